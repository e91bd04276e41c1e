import ipaddr from 'ipaddr.js';

/** What opens something: the first segment of a TCP connection, or a datagram. */
export interface Opener {
  /** `other`: what it is cannot be told. */
  protocol: 'tcp' | 'udp' | 'other';
  /** Canonical text. */
  address: string;
  /** 0 of `other`. */
  port: number;
  /** The same for a packet that is sent again; of datagrams for all from one port to one other. Null of `other`. */
  identity: string | null;
}

const TCP = 6;
const UDP = 17;
/** As UDP, as far as it matters here. */
const UDP_LITE = 136;
const IPV6_HEADER = 40;
const ROUTING = 43;
const FRAGMENT = 44;

/** Reads a packet from its network header on. Null for what is no opener, or is cut short; never throws. */
export function parsePacket(bytes: Uint8Array): Opener | null {
  switch ((bytes[0] ?? 0) >> 4) {
    case 4: {
      const headerLength = ((bytes[0] ?? 0) & 0xf) * 4;
      return headerLength < 20 ? null : opener(bytes, bytes[9], bytes.subarray(12, 16), bytes.subarray(16, 20), headerLength);
    }
    case 6:
      if (bytes[6] === ROUTING || bytes[6] === FRAGMENT) return bytes.length < IPV6_HEADER ? null : behindHeaders(bytes);
      return opener(bytes, bytes[6], bytes.subarray(8, 24), bytes.subarray(24, 40), IPV6_HEADER);
    default:
      return null;
  }
}

/** Of the extension headers a guest can have two without a privilege, and the kernel sends either once. */
function behindHeaders(bytes: Uint8Array): Opener | null {
  const from = bytes.subarray(8, 24);
  let to = bytes.subarray(24, 40);
  let next = bytes[6];
  let at = IPV6_HEADER;
  if (next === ROUTING) {
    // The last address of the list (RFC 8754: its first entry) is where it was meant to go.
    if ((bytes[at + 3] ?? 0) > 0 && bytes.length >= at + 24) to = bytes.subarray(at + 8, at + 24);
    next = bytes[at];
    at += ((bytes[at + 1] ?? 0) + 1) * 8;
  }
  if (next === FRAGMENT) {
    const isFirst = (((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >> 3 === 0;
    if (!isFirst) return null;
    next = bytes[at];
    at += 8;
  }
  if (bytes.length < at + (next === TCP ? 14 : 8)) return { protocol: 'other', address: ipaddr.fromByteArray([...to]).toString(), port: 0, identity: null };
  // The launcher's filter has not looked at the flags of these: SYN without ACK.
  if (next === TCP && ((bytes[at + 13] ?? 0) & 0x12) !== 0x02) return null;
  return opener(bytes, next, from, to, at);
}

function opener(bytes: Uint8Array, protocol: number | undefined, from: Uint8Array, to: Uint8Array, at: number): Opener | null {
  if ((protocol !== TCP && protocol !== UDP && protocol !== UDP_LITE) || bytes.length < at + 8) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, 8);
  const port = view.getUint16(2);
  const address = ipaddr.fromByteArray([...to]).toString();
  const sequence = protocol === TCP ? view.getUint32(4) : 0;
  const identity = [protocol, ipaddr.fromByteArray([...from]).toString(), view.getUint16(0), address, port, sequence].join(' ');
  return { protocol: protocol === TCP ? 'tcp' : 'udp', address, port, identity };
}
