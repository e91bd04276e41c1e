import ipaddr from 'ipaddr.js';

/** What opens something: the first segment of a TCP connection, or a datagram. */
export interface Opener {
  protocol: 'tcp' | 'udp';
  /** Canonical text. */
  address: string;
  port: number;
  /** The same for a packet that is sent again; of datagrams for all that one socket sends to one port. */
  identity: string;
}

const TCP = 6;
const UDP = 17;
const IPV6_HEADER = 40;

/** Reads a packet from its network header on. Null for what is no opener, or is cut short; never throws. */
export function parsePacket(bytes: Uint8Array): Opener | null {
  switch ((bytes[0] ?? 0) >> 4) {
    case 4: {
      const headerLength = ((bytes[0] ?? 0) & 0xf) * 4;
      return headerLength < 20 ? null : opener(bytes, bytes[9], bytes.subarray(12, 16), bytes.subarray(16, 20), headerLength);
    }
    case 6:
      // Extension headers take a privilege that no guest has.
      return opener(bytes, bytes[6], bytes.subarray(8, 24), bytes.subarray(24, 40), IPV6_HEADER);
    default:
      return null;
  }
}

function opener(bytes: Uint8Array, protocol: number | undefined, from: Uint8Array, to: Uint8Array, at: number): Opener | null {
  if ((protocol !== TCP && protocol !== UDP) || bytes.length < at + 8) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, 8);
  const port = view.getUint16(2);
  const address = ipaddr.fromByteArray([...to]).toString();
  const sequence = protocol === TCP ? view.getUint32(4) : 0;
  const identity = [protocol, ipaddr.fromByteArray([...from]).toString(), view.getUint16(0), address, port, sequence].join(' ');
  return { protocol: protocol === TCP ? 'tcp' : 'udp', address, port, identity };
}
