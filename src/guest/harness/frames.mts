/**
 * The sandbox's side of `src/guest/frames.ts`. It shares a realm with the guest, which can replace every built-in, put getters,
 * setters and species on every prototype, and so be called with what meets one of these. Hence the rules for whatever holds
 * the key: nothing is looked up later than here; bytes that hold it have no prototype, nor have the objects that hold those
 * bytes; lengths are numbers of our own; there are no arrays of them, no iteration, and no method that makes a view by species.
 */
const KEY_BYTES = 16;
const HEADER_BYTES = 4;
const MAX_BYTES = 2 * 1024 * 1024;

const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect;
const Bytes = Uint8Array;
const Memory = ArrayBuffer;
const { set, copyWithin, fill } = Bytes.prototype;
const lengthOf = getOwnPropertyDescriptor(getPrototypeOf(Bytes.prototype) as object, 'length')?.get as () => number;
const encoder = new TextEncoder();
const { encode } = TextEncoder.prototype;
const decoder = new TextDecoder();
const { decode } = TextDecoder.prototype;

/** Some of a memory as bytes that inherit nothing: who asks them for more than bytes and `length` asks in vain. */
export function bare(memory: ArrayBuffer, start: number, length: number): Uint8Array {
  const bytes = new Bytes(memory, start, length);
  setPrototypeOf(bytes, null);
  defineProperty(bytes, 'length', { __proto__: null, value: length } as PropertyDescriptor);
  return bytes;
}

export function bareMemory(length: number): ArrayBuffer {
  const memory = new Memory(length);
  setPrototypeOf(memory, null);
  return memory;
}

/** One message as it is sent: the key, its length, its text. To be queued by `next`. */
export interface Frame {
  readonly memory: ArrayBuffer;
  readonly length: number;
  next: Frame | null;
}

/** One message as the host reads it. One that is too long says that instead. */
function frameOf(key: Uint8Array, message: string): Frame {
  let text = apply(encode, encoder, [message]) as Uint8Array;
  let size = apply(lengthOf, text, []);
  if (size > MAX_BYTES) {
    text = apply(encode, encoder, [`{"t":"failure","error":"a message has ${size} bytes, ${MAX_BYTES} are allowed"}`]) as Uint8Array;
    size = apply(lengthOf, text, []);
  }
  const length = KEY_BYTES + HEADER_BYTES + size;
  const memory = bareMemory(length);
  const bytes = bare(memory, 0, length);
  apply(set, bytes, [key]);
  for (let byte = 0; byte < HEADER_BYTES; byte++) bytes[KEY_BYTES + byte] = (size >>> (8 * byte)) & 0xff;
  apply(set, bytes, [text, KEY_BYTES + HEADER_BYTES]);
  return { __proto__: null, memory, length, next: null } as Frame;
}

export interface Events {
  /** The key came: from now on messages can be sent. */
  onOpen(encode: (message: string) => Frame): void;
  onMessage(message: string): void;
}

/** Takes the host's stream apart. */
export class Splitter {
  readonly #events: Events;
  #capacity = 64 * 1024;
  #memory = bareMemory(this.#capacity);
  #held = bare(this.#memory, 0, this.#capacity);
  #length = 0;
  #open = false;

  constructor(events: Events) {
    this.#events = events;
  }

  /** Takes so many bytes from there. */
  push(memory: ArrayBuffer, start: number, length: number): void {
    this.#reserve(this.#length + length);
    apply(set, this.#held, [bare(memory, start, length), this.#length]);
    this.#length += length;
    let at = 0;
    for (;;) {
      const end = this.#endOfPart(at);
      if (end === null) break;
      const start = at;
      at = end;
      if (this.#open) this.#events.onMessage(this.#text(start + HEADER_BYTES, end));
      else this.#begin(start);
    }
    apply(copyWithin, this.#held, [0, at, this.#length]);
    // The key is not to stay here: what is read later may be shorter than somebody makes it look.
    apply(fill, this.#held, [0, this.#length - at, this.#length]);
    this.#length -= at;
  }

  #begin(start: number): void {
    const key = bare(bareMemory(KEY_BYTES), 0, KEY_BYTES);
    apply(set, key, [bare(this.#memory, start, KEY_BYTES)]);
    this.#open = true;
    this.#events.onOpen((message) => frameOf(key, message));
  }

  /** Decoded from a copy, for the runtime's decoder is not known to keep to the rules. */
  #text(start: number, end: number): string {
    const copy = new Bytes(end - start);
    apply(set, copy, [bare(this.#memory, start, end - start)]);
    return apply(decode, decoder, [copy]) as string;
  }

  #endOfPart(start: number): number | null {
    const head = this.#open ? HEADER_BYTES : KEY_BYTES;
    if (this.#length - start < head) return null;
    let size = 0;
    if (this.#open) for (let byte = HEADER_BYTES - 1; byte >= 0; byte--) size = size * 256 + (this.#held[start + byte] ?? 0);
    const end = start + head + size;
    return end <= this.#length ? end : null;
  }

  #reserve(length: number): void {
    if (length <= this.#capacity) return;
    const memory = bareMemory(2 * length);
    const larger = bare(memory, 0, 2 * length);
    apply(set, larger, [this.#held]);
    this.#capacity = 2 * length;
    this.#memory = memory;
    this.#held = larger;
  }
}
