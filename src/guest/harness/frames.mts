/**
 * The sandbox's side of `src/guest/frames.ts`. It shares a realm with the guest: nothing is looked up later than here, and
 * the key is bytes in a buffer that only a closure has. No heap snapshot shows those.
 */
const KEY_BYTES = 16;
const HEADER_BYTES = 4;
const MAX_BYTES = 2 * 1024 * 1024;

const { apply } = Reflect;
const Bytes = Uint8Array;
const { set, subarray, copyWithin, slice } = Bytes.prototype;
const encoder = new TextEncoder();
const { encode } = TextEncoder.prototype;
const decoder = new TextDecoder();
const { decode } = TextDecoder.prototype;

/** One message as the host reads it. One that is too long says that instead. */
function frameOf(key: Uint8Array, message: string): Uint8Array {
  let text = apply(encode, encoder, [message]);
  if (text.length > MAX_BYTES) {
    text = apply(encode, encoder, [`{"t":"failure","error":"a message has ${text.length} bytes, ${MAX_BYTES} are allowed"}`]);
  }
  const frame = new Bytes(KEY_BYTES + HEADER_BYTES + text.length);
  apply(set, frame, [key]);
  for (let byte = 0; byte < HEADER_BYTES; byte++) frame[KEY_BYTES + byte] = (text.length >>> (8 * byte)) & 0xff;
  apply(set, frame, [text, KEY_BYTES + HEADER_BYTES]);
  return frame;
}

export interface Events {
  /** The key came: from now on messages can be sent. */
  onOpen(encode: (message: string) => Uint8Array): void;
  onMessage(message: string): void;
}

/** Takes the host's stream apart. */
export class Splitter {
  readonly #events: Events;
  #held = new Bytes(64 * 1024);
  #length = 0;
  #open = false;

  constructor(events: Events) {
    this.#events = events;
  }

  push(chunk: Uint8Array): void {
    this.#reserve(this.#length + chunk.length);
    apply(set, this.#held, [chunk, this.#length]);
    this.#length += chunk.length;
    let at = 0;
    for (;;) {
      const end = this.#endOfPart(at);
      if (end === null) break;
      const start = at;
      at = end;
      if (this.#open) this.#events.onMessage(apply(decode, decoder, [apply(subarray, this.#held, [start + HEADER_BYTES, end])]));
      else this.#begin(apply(slice, this.#held, [start, end]) as Uint8Array);
    }
    apply(copyWithin, this.#held, [0, at, this.#length]);
    this.#length -= at;
  }

  #begin(key: Uint8Array): void {
    this.#open = true;
    this.#events.onOpen((message) => frameOf(key, message));
  }

  #endOfPart(start: number): number | null {
    const head = this.#open ? HEADER_BYTES : KEY_BYTES;
    if (this.#length - start < head) return null;
    let size = 0;
    if (this.#open) for (let byte = HEADER_BYTES - 1; byte >= 0; byte--) size = size * 256 + (this.#held[start + byte] ?? 0);
    const end = start + head + size;
    return end <= this.#length ? end : null;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#held.length) return;
    const larger = new Bytes(2 * bytes);
    apply(set, larger, [this.#held]);
    this.#held = larger;
  }
}
