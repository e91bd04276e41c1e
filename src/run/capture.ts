import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

const FIRST_BYTES = 4096;

/** The caller's own function for output: may throw. Nothing more is read until a promise that it returns is settled. */
export type OnChunk = (chunk: Buffer) => unknown;

export interface CaptureOptions {
  maxBytes: number;
  /** False: nothing is kept, `onChunk` is all there is. */
  keep: boolean;
  onChunk: OnChunk | null;
  /** The first byte beyond the cap came. */
  onOverflow(): void;
  /** `onChunk` threw, or its promise was rejected; it is not called again. */
  onThrow(error: unknown): void;
}

/** Keeps the output of one stream up to its cap, and reads and discards the rest, so that the writer never hangs. */
export class Capture {
  /** Resolves when the stream has ended, or was destroyed, and the caller is done with what it got. */
  readonly ended: Promise<void>;
  /** Bytes that came so far, those beyond the cap included. */
  seen = 0;
  isOpen = true;
  /** When the caller's promise was given that is not settled yet; null when there is none. */
  heldUpSince: number | null = null;
  readonly #stream: Readable;
  readonly #options: CaptureOptions;
  /** Grows by doubling: many small chunks, or slices of large ones, would keep far more memory than they hold. */
  #bytes: Buffer = Buffer.alloc(0);
  /** Bytes inside the cap. */
  #length = 0;
  #callback: OnChunk | null;
  #isAtEnd = false;
  #onEnded: () => void = () => undefined;

  constructor(stream: Readable, options: CaptureOptions) {
    this.#stream = stream;
    this.#options = options;
    this.#callback = options.onChunk;
    this.ended = new Promise((resolve) => (this.#onEnded = resolve));
    // A paused stream with nothing in it ends all the same: the caller's last promise may still be open then.
    const end = () => {
      this.#isAtEnd = true;
      this.#endIfFree();
    };
    stream.once('end', end).once('close', end);
    stream.on('data', (chunk: Buffer) => this.#take(chunk));
  }

  get isHeldUp(): boolean {
    return this.heldUpSince !== null;
  }

  get truncated(): boolean {
    return this.seen > this.#length;
  }

  /** What was kept, as UTF-8. A character that the cap cut through is left out. */
  text(): string {
    if (!this.#options.keep) return '';
    const kept = this.#bytes.subarray(0, this.#length);
    return this.truncated ? new StringDecoder('utf8').write(kept) : kept.toString('utf8');
  }

  #take(chunk: Buffer): void {
    const overflowed = this.truncated;
    this.seen += chunk.length;
    if (overflowed) return;
    const room = this.#options.maxBytes - this.#length;
    // A copy of what is inside the cap: a caller that keeps the slice would keep all of the chunk.
    const inside = chunk.length <= room ? chunk : Buffer.from(chunk.subarray(0, room));
    if (this.#options.keep) this.#append(inside);
    this.#length += inside.length;
    if (inside.length > 0) this.#callBack(inside);
    if (this.truncated) this.#options.onOverflow();
  }

  #append(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(this.#options.maxBytes, Math.max(needed, FIRST_BYTES, 2 * this.#bytes.length)));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    chunk.copy(this.#bytes, this.#length);
  }

  #callBack(chunk: Buffer): void {
    try {
      const done = this.#callback?.(chunk);
      if (isThenable(done)) this.#holdUp(Promise.resolve(done));
    } catch (error) {
      this.#giveUp(error);
    }
  }

  /** The guest is slowed down by its full pipe: whatever waits, waits there. */
  #holdUp(done: Promise<void>): void {
    this.heldUpSince = performance.now();
    this.#stream.pause();
    void done
      .catch((error: unknown) => this.#giveUp(error))
      .then(() => this.#goOn());
  }

  /** From now on nothing waits for the caller, whose promise may never settle; what comes is still kept. */
  release(): void {
    this.#callback = null;
    this.#goOn();
  }

  #goOn(): void {
    this.heldUpSince = null;
    this.#stream.resume();
    this.#endIfFree();
  }

  #endIfFree(): void {
    if (!this.#isAtEnd || this.isHeldUp) return;
    this.isOpen = false;
    this.#onEnded();
  }

  #giveUp(error: unknown): void {
    this.#callback = null;
    this.#options.onThrow(error);
  }
}

/** A promise of whatever make: the caller's may come from another library or realm. */
function isThenable(value: unknown): value is PromiseLike<void> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
