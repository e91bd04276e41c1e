/** Bytes that arrive in pieces of any size, at a cost linear in their number. */
export class GrowingBuffer {
  length = 0;
  #buffer: Buffer;

  constructor(first: Uint8Array = Buffer.alloc(0)) {
    this.#buffer = Buffer.allocUnsafe(Math.max(2048, 2 * first.length));
    this.append(first);
  }

  append(chunk: Uint8Array): void {
    if (this.length + chunk.length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.length + chunk.length));
      this.#buffer.copy(larger, 0, 0, this.length);
      this.#buffer = larger;
    }
    this.#buffer.set(chunk, this.length);
    this.length += chunk.length;
  }

  /** The bytes so far; valid until the next `append`. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.length);
  }
}
