import type { Connection } from '../run/result.js';
import { within } from './within.js';

/** Calls the caller's own function with each attempt; what it throws, or its promises are rejected with, goes to `onThrow`. */
export class Told {
  readonly #call: (connection: Connection) => unknown;
  readonly #onThrow: (error: unknown) => void;
  readonly #open = new Set<Promise<void>>();

  constructor(call: (connection: Connection) => unknown, onThrow: (error: unknown) => void) {
    this.#call = call;
    this.#onThrow = onThrow;
  }

  /** Never throws, and waits for no promise. */
  tell(connection: Connection): void {
    try {
      const returned = this.#call(connection);
      if (returned === undefined) return;
      const settled = Promise.resolve(returned).then(() => {}, this.#onThrow).then(() => void this.#open.delete(settled));
      this.#open.add(settled);
    } catch (error) {
      this.#onThrow(error);
    }
  }

  /** When all promises are settled that were returned so far, or the time is up. Never rejects. */
  settled(milliseconds: number): Promise<void> {
    return within(milliseconds, Promise.all(this.#open));
  }
}
