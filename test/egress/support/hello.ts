/** ClientHellos built by hand, for what real clients do not send. */
export interface HelloShape {
  /** Entries of the server name list: type and bytes. Null leaves the extension out. */
  names?: [type: number, name: string | Buffer][] | null;
  /** Further extensions, before and behind the server name. */
  before?: [type: number, data: Buffer][];
  after?: [type: number, data: Buffer][];
  withoutExtensions?: boolean;
}

export function clientHello(shape: HelloShape = {}): Buffer {
  const names = shape.names === undefined ? [[0, 'example.com'] as [number, string]] : shape.names;
  const list = names?.map(([type, name]) => Buffer.concat([Buffer.from([type]), vector(2, Buffer.from(name))]));
  const serverName: [number, Buffer][] = list ? [[0, vector(2, Buffer.concat(list))]] : [];
  const extensions = [...(shape.before ?? []), ...serverName, ...(shape.after ?? [])].map(([type, data]) => Buffer.concat([uint(2, type), vector(2, data)]));
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    vector(1, Buffer.alloc(32, 9)),
    vector(2, Buffer.from([0x1a, 0x1a, 0x13, 0x01, 0x13, 0x02])),
    vector(1, Buffer.from([0])),
    ...(shape.withoutExtensions ? [] : [vector(2, Buffer.concat(extensions))]),
  ]);
  return handshake(body);
}

export function handshake(body: Buffer, type = 1): Buffer {
  return Buffer.concat([Buffer.from([type]), vector(3, body)]);
}

/** `sizes`: the lengths of the records, the last one takes the rest. */
export function records(message: Buffer, sizes: number[] = [], type = 22, version = 0x0301): Buffer {
  const parts: Buffer[] = [];
  let rest = message;
  for (const size of [...sizes, rest.length]) {
    if (rest.length === 0) break;
    const part = rest.subarray(0, Math.min(size, 2 ** 14));
    rest = rest.subarray(part.length);
    parts.push(Buffer.concat([Buffer.from([type]), uint(2, version), vector(2, part)]));
  }
  while (rest.length > 0) {
    const part = rest.subarray(0, 2 ** 14);
    rest = rest.subarray(part.length);
    parts.push(Buffer.concat([Buffer.from([type]), uint(2, version), vector(2, part)]));
  }
  return Buffer.concat(parts);
}

export function vector(lengthBytes: number, data: Buffer): Buffer {
  return Buffer.concat([uint(lengthBytes, data.length), data]);
}

export function uint(bytes: number, value: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}
