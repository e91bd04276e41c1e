import type { Connection } from '../run/result.js';

/** Every attempt of a run: the first `capacity` are kept, all that were looked at are told. */
export class ConnectionLog {
  readonly entries: Connection[] = [];
  /** Attempts that came after the log was full, or that nobody looked at. */
  omitted = 0;
  readonly #capacity: number;
  readonly #listener: (connection: Connection) => void;

  /** The listener must not throw. */
  constructor(listener: (connection: Connection) => void = () => {}, capacity = 1000) {
    this.#listener = listener;
    this.#capacity = capacity;
  }

  add(connection: Connection): void {
    if (this.entries.length < this.#capacity) this.entries.push(connection);
    else this.omitted += 1;
    this.#listener({ ...connection });
  }

  /** Attempts of which no more is known than that they were made. */
  omit(count: number): void {
    this.omitted += count;
  }

  /** An attempt that ended before anything was connected. `port` is 0 for a name that was only looked up. */
  refuse(attempt: { host: string; port: number; address: string | null; reason: string; at?: number }): void {
    const now = Date.now();
    const at = attempt.at ?? now;
    const { host, port, address, reason } = attempt;
    this.add({ at, host: printable(host), port, address, verdict: 'refused', reason: printable(reason), bytesSent: 0, bytesReceived: 0, durationMs: now - at });
  }
}

/** Names come from the guest: no control characters and no megabytes of them on someone's terminal. */
function printable(text: string): string {
  return text.slice(0, 300).replace(/[^\u0020-\u007e]/gu, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}
