/** The server name of a ClientHello's body (RFC 8446, 4.1.2), lower-cased; null when there is none. Throws a TypeError on a malformed one. */
export function serverName(body: Uint8Array): string | null {
  const hello = new Reader(body);
  hello.take(2 + 32, 'a version and a random value');
  hello.vector(1, 'a session id');
  hello.vector(2, 'cipher suites');
  hello.vector(1, 'compression methods');
  if (hello.done()) return null;
  const extensions = new Reader(hello.vector(2, 'extensions'));
  if (!hello.done()) throw new TypeError('bytes behind the extensions');
  const seen = new Set<number>();
  let name: string | null = null;
  while (!extensions.done()) {
    const type = extensions.number(2, 'an extension');
    const data = extensions.vector(2, 'an extension');
    // Which of two counts is each server's own choice.
    if (seen.has(type)) throw new TypeError(`extension ${type} twice`);
    seen.add(type);
    if (type === SERVER_NAME) name = nameOf(data);
  }
  return name;
}

const SERVER_NAME = 0;
const HOST_NAME = 0;

function nameOf(extension: Uint8Array): string | null {
  const outer = new Reader(extension);
  const list = new Reader(outer.vector(2, 'a server name list'));
  if (!outer.done()) throw new TypeError('bytes behind the server name list');
  let name: string | null = null;
  while (!list.done()) {
    const type = list.number(1, 'a server name');
    const value = list.vector(2, 'a server name');
    if (type !== HOST_NAME) continue;
    if (name !== null) throw new TypeError('two server names');
    name = Buffer.from(value).toString('latin1').toLowerCase();
    // Servers that end strings at a NUL would read another name than we compare.
    if (!/^[\u0021-\u007e]{1,255}$/.test(name)) throw new TypeError('a server name that is no host name');
  }
  return name;
}

class Reader {
  #offset = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  done(): boolean {
    return this.#offset === this.#bytes.length;
  }

  take(length: number, what: string): Uint8Array {
    const end = this.#offset + length;
    if (end > this.#bytes.length) throw new TypeError(`${what} cut short`);
    const taken = this.#bytes.subarray(this.#offset, end);
    this.#offset = end;
    return taken;
  }

  number(bytes: number, what: string): number {
    return this.take(bytes, what).reduce((value, byte) => value * 256 + byte, 0);
  }

  /** A vector with its length in front of it. */
  vector(lengthBytes: number, what: string): Uint8Array {
    return this.take(this.number(lengthBytes, what), what);
  }
}
