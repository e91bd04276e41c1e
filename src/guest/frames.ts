import { GrowingBuffer } from '../growing-buffer.js';

/**
 * What a sandbox sends: frames of the channel's key, a little-endian u32 with the number of bytes, and so many bytes of
 * UTF-8. What the host sends: the key once, then the same frames without it.
 *
 * A runtime's descriptors are numbers that its guest can write to, in Deno too (`new net.Socket({ fd })` asks for no
 * permission). The harness got the key before there was a guest, and holds it where no code but its own can look; what
 * comes without it is junk between two frames.
 */
export const KEY_BYTES = 16;
const HEADER_BYTES = 4;
/** A guest that writes junk may go on with its work, but not for ever. */
const MAX_JUNK_BYTES = 16 * 1024 * 1024;

/** The other side does not keep to the protocol. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

export function encodeFrame(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(HEADER_BYTES + length);
  frame.writeUInt32LE(length, 0);
  frame.write(text, HEADER_BYTES);
  return frame;
}

/** Takes what a sandbox sends apart. Holds no more than one frame of `maxBytes` and what came with its last chunk. */
export class FrameReader {
  readonly #key: Buffer;
  readonly #maxBytes: number;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  /** What came of a frame so far, in one piece: a guest may send it a byte at a time. */
  #begun: GrowingBuffer | null = null;
  /** Bytes to wait for before there is anything new to see. */
  #wanted = KEY_BYTES + HEADER_BYTES;
  #junk = 0;

  constructor(key: Buffer, maxBytes: number) {
    this.#key = key;
    this.#maxBytes = maxBytes;
  }

  /** The frames that are complete now. @throws ProtocolError for one that is too long or is no UTF-8, and for too much junk. */
  *push(chunk: Buffer): Generator<string> {
    this.#begun?.append(chunk);
    let held = this.#begun?.bytes() ?? chunk;
    if (held.length < this.#wanted && this.#begun !== null) return;
    while (held.length >= this.#wanted) {
      held = this.#skipJunk(held);
      const end = this.#endOfFrame(held);
      if (end === null) break;
      yield this.#decode(held.subarray(KEY_BYTES + HEADER_BYTES, end));
      held = held.subarray(end);
    }
    this.#begun = held.length === 0 ? null : new GrowingBuffer(held);
  }

  #skipJunk(held: Buffer): Buffer {
    const at = held.indexOf(this.#key);
    if (at === 0) return held;
    // The key may have come in part.
    const junk = at > 0 ? at : held.length - (KEY_BYTES - 1);
    this.#junk += junk;
    if (this.#junk > MAX_JUNK_BYTES) throw new ProtocolError(`more than ${MAX_JUNK_BYTES} bytes of no frame`);
    return held.subarray(junk);
  }

  #endOfFrame(held: Buffer): number | null {
    this.#wanted = KEY_BYTES + HEADER_BYTES;
    if (held.length < this.#wanted) return null;
    const length = held.readUInt32LE(KEY_BYTES);
    if (length > this.#maxBytes) throw new ProtocolError(`a frame of ${length} bytes, where ${this.#maxBytes} are allowed`);
    const end = this.#wanted + length;
    if (held.length >= end) return end;
    this.#wanted = end;
    return null;
  }

  #decode(bytes: Buffer): string {
    try {
      return this.#decoder.decode(bytes);
    } catch {
      throw new ProtocolError('a frame that is not UTF-8');
    }
  }
}
