import type { Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';

/** One of our own streams, written to without blocking, that notices when nobody reads it any more. */
export class Output {
  readonly #stream: Writable;
  readonly #onBroken: (error: NodeJS.ErrnoException) => void;
  #broken = false;
  #failure: NodeJS.ErrnoException | null = null;
  #waiting: (() => void)[] = [];
  #wakes = 0;

  /** `onBroken` is called once, with EPIPE where the reader has gone. */
  constructor(stream: Writable, onBroken: (error: NodeJS.ErrnoException) => void = () => undefined) {
    this.#stream = stream;
    this.#onBroken = onBroken;
    stream.on('error', (error: NodeJS.ErrnoException) => this.#break(error));
    stream.on('drain', () => this.#wake());
  }

  /** Why it cannot be written to any more. */
  get failure(): NodeJS.ErrnoException | null {
    return this.#failure;
  }

  /** Writes without waiting. The promise is there when the reader is slower than the guest, and resolves once it is not. */
  write(chunk: Buffer | string): Promise<void> | undefined {
    if (this.#broken) return undefined;
    try {
      if (this.#stream.write(chunk)) return undefined;
    } catch (error) {
      // Node writes to files synchronously, and a full disk is thrown.
      this.#break(error as NodeJS.ErrnoException);
      return undefined;
    }
    return this.#broken ? undefined : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves when everything is written, or nobody reads it. */
  async flushed(): Promise<void> {
    // A write to a file is done at once, and its failure told a turn later.
    await turn();
    if (this.#broken || this.#stream.writableLength === 0) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      this.#stream.write('', () => this.#wake());
    });
  }

  /** From now on a reader that takes nothing for this long is given up. */
  hurry(milliseconds: number): void {
    const before = this.#wakes;
    const judge = () => {
      if (this.#waiting.length === 0 || this.#wakes !== before) return this.hurry(milliseconds);
      this.#broken = true;
      this.#wake();
    };
    if (!this.#broken) setTimeout(judge, milliseconds).unref();
  }

  #break(error: NodeJS.ErrnoException): void {
    if (this.#broken) return;
    this.#broken = true;
    this.#failure = error;
    this.#wake();
    this.#onBroken(error);
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#wakes++;
    for (const resolve of waiting) resolve();
  }
}
