import type { Socket } from 'node:net';

import type { DnsDesk } from './dns-server.js';
import type { Pace } from './pace.js';

// A query has one name of 255 bytes and some EDNS options.
export const LONGEST_QUERY = 4096;
const IDLE_MS = 30_000;
const REST_MS = 100;

/** One guest's DNS connection. What comes faster than the pace waits in it; nothing that was read ends without a word. */
export class DnsStream {
  readonly #client: Socket;
  readonly #desk: DnsDesk;
  readonly #pace: Pace;
  #pending: Buffer = Buffer.alloc(0);
  #rest: NodeJS.Timeout | null = null;
  #guestGone = false;

  constructor(client: Socket, desk: DnsDesk, pace: Pace) {
    this.#client = client;
    this.#desk = desk;
    this.#pace = pace;
    client.on('data', (chunk: Buffer) => {
      desk.stir();
      this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
      this.#serve();
    });
    // Comes even while the reading is paused; what waits is answered first.
    client.on('end', () => {
      if (this.#rest === null) client.end();
    });
    client.on('drain', () => {
      if (this.#rest === null) client.resume();
    });
    client.setTimeout(IDLE_MS, () => {
      // Held back, as nobody reads its replies: queries may wait in the socket.
      if (client.isPaused()) desk.refuse('a DNS connection whose replies are not read');
      client.destroy();
    });
    client.on('error', (error: NodeJS.ErrnoException) => desk.refuse(`a DNS connection ended by ${error.code ?? error.message}`));
    client.on('close', () => this.#tellRest());
  }

  guestGone(): void {
    this.#guestGone = true;
    this.#serve();
    this.#client.resume();
  }

  #serve(): void {
    clearTimeout(this.#rest ?? undefined);
    this.#rest = null;
    let drained = true;
    for (let query = this.#next(); query !== null; query = this.#next()) {
      if (!this.#pace.take()) {
        if (!this.#guestGone) return this.#wait();
        this.#omitWhole();
        continue;
      }
      this.#skip(query);
      const reply = this.#desk.respond(query, 'tcp');
      if (!reply) return void this.#client.destroy();
      // A failed write would end the reading, too.
      if (!this.#guestGone) drained = this.#client.write(framed(reply)) && drained;
    }
    this.#pending = Buffer.from(this.#pending);
    if (this.#client.readableEnded) this.#client.end();
    // Who does not read the replies asks no further questions.
    if (drained) this.#client.resume();
    else this.#client.pause();
  }

  /** The next whole query, not taken out yet. */
  #next(): Buffer | null {
    if (this.#pending.length < 2 || this.#client.destroyed) return null;
    const length = this.#pending.readUInt16BE(0);
    if (length > LONGEST_QUERY) {
      this.#pending = Buffer.alloc(0);
      this.#desk.refuse(`DNS query of ${length} bytes`);
      this.#client.destroy();
      return null;
    }
    return this.#pending.length < 2 + length ? null : this.#pending.subarray(2, 2 + length);
  }

  #skip(query: Buffer): void {
    this.#pending = this.#pending.subarray(2 + query.length);
  }

  #wait(): void {
    this.#client.pause();
    this.#rest = setTimeout(() => this.#serve(), REST_MS);
  }

  /** A guest can leave megabytes of queries behind: they are counted in one go, and none of them is looked at. */
  #omitWhole(): void {
    const bytes = this.#pending;
    let count = 0;
    let at = 0;
    while (at + 2 <= bytes.length) {
      const length = bytes.readUInt16BE(at);
      if (length > LONGEST_QUERY || at + 2 + length > bytes.length) break;
      at += 2 + length;
      count++;
    }
    this.#pending = bytes.subarray(at);
    this.#desk.omit(count);
  }

  /** What was sent before the end and not answered. */
  #tellRest(): void {
    clearTimeout(this.#rest ?? undefined);
    this.#omitWhole();
    if (this.#pending.length > 0) this.#desk.refuse('a DNS query that ends half-way');
  }
}

function framed(reply: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(reply.length + 2);
  frame.writeUInt16BE(reply.length, 0);
  reply.copy(frame, 2);
  return frame;
}
