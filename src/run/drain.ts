import type { Capture } from './capture.js';

/** A descriptor of the guest's pipes may have been passed out of the sandbox: its holder cannot hold the result up. */
const SILENCE_MS = 250;
const LONGEST_MS = 2000;

/**
 * Waits for the end of the streams of a sandbox that is gone, but not for one that stays silent; and for the caller, but
 * not for one promise that is open for two seconds when the run's `deadline` (`performance.now()`) has passed.
 */
export async function drained(captures: readonly Capture[], deadline: number): Promise<void> {
  if (captures.every(({ isOpen }) => !isOpen)) return;
  const silence = new Silence(captures, deadline);
  await Promise.race([Promise.all(captures.map(({ ended }) => ended)), silence.came]);
  silence.stop();
}

class Silence {
  readonly came: Promise<void>;
  readonly #captures: readonly Capture[];
  readonly #deadline: number;
  /** When the output last had to wait for the caller: that time is none of the guest's. */
  #freeSince = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #resolve: () => void = () => undefined;

  constructor(captures: readonly Capture[], deadline: number) {
    this.#captures = captures;
    this.#deadline = deadline;
    this.came = new Promise((resolve) => (this.#resolve = resolve));
    this.#watch();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #watch(): void {
    if (this.#stopped) return;
    const before = this.#seen();
    // After a block of the event loop timers come first: what waits in the pipes is read before the verdict.
    this.#timer = setTimeout(() => setImmediate(() => this.#judge(before)), SILENCE_MS);
  }

  #judge(before: number): void {
    for (const capture of this.#captures) if (this.#isLost(capture)) capture.release();
    const heldUp = this.#captures.some(({ isHeldUp }) => isHeldUp);
    if (heldUp) this.#freeSince = performance.now();
    if (!heldUp && (this.#seen() === before || performance.now() - this.#freeSince > LONGEST_MS)) this.#resolve();
    else this.#watch();
  }

  #isLost({ heldUpSince }: Capture): boolean {
    return heldUpSince !== null && performance.now() > Math.max(this.#deadline, heldUpSince + LONGEST_MS);
  }

  #seen(): number {
    return this.#captures.reduce((sum, { seen }) => sum + seen, 0);
  }
}
