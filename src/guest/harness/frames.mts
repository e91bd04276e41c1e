/** The sandbox's side of `src/guest/frames.ts`. In Node it shares a realm with the guest: nothing is looked up later. */
const HEADER_BYTES = 4;
const MAX_BYTES = 2 * 1024 * 1024;

const { apply } = Reflect;
const Bytes = Uint8Array;
const { set, subarray, copyWithin } = Bytes.prototype;
const encoder = new TextEncoder();
const { encode } = TextEncoder.prototype;
const decoder = new TextDecoder();
const { decode } = TextDecoder.prototype;

/** One message as the host reads it. One that is too long says that instead. */
export function frameOf(message: string): Uint8Array {
  let text = apply(encode, encoder, [message]);
  if (text.length > MAX_BYTES) {
    text = apply(encode, encoder, [`{"t":"failure","error":"a message has ${text.length} bytes, ${MAX_BYTES} are allowed"}`]);
  }
  const frame = new Bytes(HEADER_BYTES + text.length);
  for (let byte = 0; byte < HEADER_BYTES; byte++) frame[byte] = (text.length >>> (8 * byte)) & 0xff;
  apply(set, frame, [text, HEADER_BYTES]);
  return frame;
}

/** Takes the host's stream apart. */
export class Splitter {
  readonly #onMessage: (message: string) => void;
  #held = new Bytes(64 * 1024);
  #length = 0;

  constructor(onMessage: (message: string) => void) {
    this.#onMessage = onMessage;
  }

  push(chunk: Uint8Array): void {
    this.#reserve(this.#length + chunk.length);
    apply(set, this.#held, [chunk, this.#length]);
    this.#length += chunk.length;
    let at = 0;
    for (;;) {
      const end = this.#endOfFrame(at);
      if (end === null) break;
      const text = apply(subarray, this.#held, [at + HEADER_BYTES, end]) as Uint8Array;
      at = end;
      this.#onMessage(apply(decode, decoder, [text]));
    }
    apply(copyWithin, this.#held, [0, at, this.#length]);
    this.#length -= at;
  }

  #endOfFrame(start: number): number | null {
    if (this.#length - start < HEADER_BYTES) return null;
    let size = 0;
    for (let byte = HEADER_BYTES - 1; byte >= 0; byte--) size = size * 256 + (this.#held[start + byte] ?? 0);
    const end = start + HEADER_BYTES + size;
    return end <= this.#length ? end : null;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#held.length) return;
    const larger = new Bytes(2 * bytes);
    apply(set, larger, [this.#held]);
    this.#held = larger;
  }
}
