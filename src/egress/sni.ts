import { serverName } from './client-hello.js';
import { GrowingBuffer } from '../growing-buffer.js';
import { openingKind } from './opening.js';

/** What the first bytes of a connection turned out to be. */
export type Opening =
  | { kind: 'more' }
  | { kind: 'not-tls' }
  /** `serverName` is lower-cased; null when the client gave none. Behind Encrypted Client Hello it is the outer, visible one. */
  | { kind: 'tls'; serverName: string | null }
  | { kind: 'malformed'; reason: string };

// RFC 8446, 5.1: at most 2^14 bytes of plaintext in a record.
const LONGEST_RECORD = 2 ** 14;
const LONGEST_HELLO = 2 ** 16;
// A hello may come in records of one byte each, but no client does that to a long one.
const MOST_BYTES = 2 ** 17;

const RECORD_HEADER = 5;
const HANDSHAKE_HEADER = 4;
const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;

const MORE: Opening = { kind: 'more' };

/** Finds the TLS server name in the first bytes of a stream, however they are cut into segments and records. */
export class OpeningReader {
  readonly #raw = new GrowingBuffer();
  readonly #handshake = new GrowingBuffer();
  #offset = 0;
  #verdict: Opening = MORE;

  /** Takes the next bytes. After any verdict but `more` further bytes change nothing. */
  push(chunk: Uint8Array): Opening {
    if (this.#verdict.kind !== 'more') return this.#verdict;
    this.#raw.append(chunk);
    this.#verdict = this.#read();
    return this.#verdict;
  }

  #read(): Opening {
    switch (openingKind(this.#raw.bytes())) {
      case 'more':
        return MORE;
      case 'other':
        return { kind: 'not-tls' };
      case 'sslv2':
        return { kind: 'tls', serverName: null };
      case 'odd':
        return malformed('a record of no known version');
      case 'records':
        return this.#readRecords();
    }
  }

  #readRecords(): Opening {
    const raw = this.#raw.bytes();
    while (raw.length - this.#offset >= RECORD_HEADER) {
      const start = this.#offset + RECORD_HEADER;
      const length = raw.readUInt16BE(start - 2);
      if (raw[this.#offset] !== HANDSHAKE_RECORD || raw[this.#offset + 1] !== 3) return malformed('another record before the end of the hello');
      if (length === 0 || length > LONGEST_RECORD) return malformed(`a record of ${length} bytes`);
      if (raw.length < start + length) break;
      this.#handshake.append(raw.subarray(start, start + length));
      this.#offset = start + length;
      const verdict = this.#readHandshake();
      if (verdict.kind !== 'more') return verdict;
    }
    return raw.length > MOST_BYTES ? malformed('too many records') : MORE;
  }

  #readHandshake(): Opening {
    const message = this.#handshake.bytes();
    if (message[0] !== CLIENT_HELLO) return malformed('another message first');
    if (message.length < HANDSHAKE_HEADER) return MORE;
    const end = HANDSHAKE_HEADER + message.readUIntBE(1, 3);
    if (end > LONGEST_HELLO) return malformed(`${end} bytes`);
    if (message.length < end) return MORE;
    if (message.length > end) return malformed('another message behind it');
    try {
      return { kind: 'tls', serverName: serverName(message.subarray(HANDSHAKE_HEADER)) };
    } catch (error) {
      return malformed((error as Error).message);
    }
  }
}

function malformed(reason: string): Opening {
  return { kind: 'malformed', reason };
}
