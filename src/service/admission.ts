/** Why a request was not let in. */
export class NotAdmitted extends Error {
  override readonly name = 'NotAdmitted';
  constructor(readonly reason: 'full' | 'closing' | 'gone') {
    super(reason);
  }
}

interface Waiting {
  enter(): void;
  refuse(error: NotAdmitted): void;
}

/** Lets so many in at a time, keeps so many waiting, first come first served, and turns the rest away. */
export class Admission {
  readonly #concurrency: number;
  readonly #queueLength: number;
  readonly #waiting = new Set<Waiting>();
  readonly #onIdle: (() => void)[] = [];
  #running = 0;
  #closing = false;
  /** Milliseconds that a run holds its place, averaged with the latest counting most; null before the first. */
  #typicalMs: number | null = null;

  constructor({ concurrency, queueLength }: { concurrency: number; queueLength: number }) {
    this.#concurrency = concurrency;
    this.#queueLength = queueLength;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get closing(): boolean {
    return this.#closing;
  }

  /**
   * Resolves when there is room, with what gives the place back.
   * @throws NotAdmitted
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    if (this.#closing) throw new NotAdmitted('closing');
    if (signal.aborted) throw new NotAdmitted('gone');
    if (this.#running < this.#concurrency) this.#running++;
    else await this.#wait(signal);
    const enteredAt = performance.now();
    return () => this.#leave(performance.now() - enteredAt);
  }

  /** Refuses whoever waits and whoever comes; what runs goes on. */
  close(): void {
    this.#closing = true;
    for (const each of this.#waiting) each.refuse(new NotAdmitted('closing'));
  }

  /** Resolves when nothing runs. */
  idle(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : new Promise((resolve) => void this.#onIdle.push(resolve));
  }

  /** Whole seconds after which a place in the queue is likely: what waits now, at the pace of late. */
  retryAfterSeconds(): number {
    const seconds = ((this.#typicalMs ?? 1000) * this.#waiting.size) / this.#concurrency / 1000;
    return Math.min(60, Math.max(1, Math.ceil(seconds)));
  }

  #wait(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= this.#queueLength) throw new NotAdmitted('full');
    return new Promise((resolve, reject) => {
      const settle = () => {
        this.#waiting.delete(waiting);
        signal.removeEventListener('abort', onAbort);
      };
      const waiting: Waiting = {
        enter: () => {
          settle();
          resolve();
        },
        refuse: (error) => {
          settle();
          reject(error);
        },
      };
      const onAbort = () => waiting.refuse(new NotAdmitted('gone'));
      signal.addEventListener('abort', onAbort);
      this.#waiting.add(waiting);
    });
  }

  #leave(heldMs: number): void {
    this.#typicalMs = this.#typicalMs === null ? heldMs : 0.8 * this.#typicalMs + 0.2 * heldMs;
    const [next] = this.#waiting;
    // The place goes from one to the other: nobody who comes in between can take it.
    if (next !== undefined) return next.enter();
    this.#running--;
    if (this.#running === 0) for (const tell of this.#onIdle.splice(0)) tell();
  }
}
