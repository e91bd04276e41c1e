import ipaddr from 'ipaddr.js';

export interface PacketShape {
  from?: string;
  to: string;
  port: number;
  sourcePort?: number;
  sequence?: number;
  /** Bytes of options in the IPv4 header, a multiple of four. */
  options?: number;
}

/** The first segment of a TCP connection, from its network header on. */
export function segment(shape: PacketShape): Buffer {
  const body = Buffer.alloc(20);
  body.writeUInt16BE(shape.sourcePort ?? 40_000, 0);
  body.writeUInt16BE(shape.port, 2);
  body.writeUInt32BE(shape.sequence ?? 1, 4);
  body.writeUInt16BE(0x5002, 12);
  return Buffer.concat([networkHeader(shape, 6), body]);
}

export function datagram(shape: PacketShape): Buffer {
  const body = Buffer.alloc(8 + 12);
  body.writeUInt16BE(shape.sourcePort ?? 40_000, 0);
  body.writeUInt16BE(shape.port, 2);
  return Buffer.concat([networkHeader(shape, 17), body]);
}

function networkHeader({ from = '127.0.0.1', to, options = 0 }: PacketShape, protocol: number): Buffer {
  const source = ipaddr.parse(from).toByteArray();
  const destination = ipaddr.parse(to).toByteArray();
  if (destination.length === 16) {
    const header = Buffer.alloc(40);
    header[0] = 0x60;
    header[6] = protocol;
    header.set(source, 8);
    header.set(destination, 24);
    return header;
  }
  const header = Buffer.alloc(20 + options);
  header[0] = 0x40 | ((20 + options) / 4);
  header[9] = protocol;
  header.set(source, 12);
  header.set(destination, 16);
  return header;
}
