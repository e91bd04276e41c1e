/** A frame is a little-endian u32 with the number of bytes, and so many bytes of UTF-8. */
const HEADER_BYTES = 4;

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

/** Takes a stream of bytes apart. Never holds more than one frame of `maxBytes` and what came with its last chunk. */
export class FrameReader {
  readonly #maxBytes: number;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #chunks: Buffer[] = [];
  #held = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The frames that are complete now. @throws ProtocolError for one that is too long or is no UTF-8. */
  *push(chunk: Buffer): Generator<string> {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    for (;;) {
      const length = this.#nextLength();
      if (length === null || this.#held < HEADER_BYTES + length) return;
      const all = this.#joined();
      this.#chunks = [all.subarray(HEADER_BYTES + length)];
      this.#held -= HEADER_BYTES + length;
      yield this.#decode(all.subarray(HEADER_BYTES, HEADER_BYTES + length));
    }
  }

  #nextLength(): number | null {
    if (this.#held < HEADER_BYTES) return null;
    const [first] = this.#chunks;
    const head = first !== undefined && first.length >= HEADER_BYTES ? first : this.#joined();
    const length = head.readUInt32LE(0);
    if (length > this.#maxBytes) throw new ProtocolError(`a frame of ${length} bytes, where ${this.#maxBytes} are allowed`);
    return length;
  }

  #joined(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? Buffer.alloc(0);
  }

  #decode(bytes: Buffer): string {
    try {
      return this.#decoder.decode(bytes);
    } catch {
      throw new ProtocolError('a frame that is not UTF-8');
    }
  }
}
