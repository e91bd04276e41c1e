import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import {
  CARRIERS,
  GLOBAL_UNICAST,
  IPV4_RANGES,
  IPV6_RANGES,
  METADATA_ADDRESSES,
  NEVER_OPENED,
} from './ranges.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** A block of addresses, as `parseRange` makes it. */
export interface Range {
  network: Address;
  prefix: number;
}

/** What one run may reach beyond the public addresses, and what of them it may not. */
export interface AddressRules {
  /** `allowPrivate`, parsed. */
  open: readonly Range[];
  /** Addresses of the host's own interfaces in canonical text (`ownAddresses()`). */
  own: ReadonlySet<string>;
}

const special = [...IPV4_RANGES, ...IPV6_RANGES].map(([cidr, reason]) => ({ range: block(cidr), reason }));
const neverOpened = NEVER_OPENED.map(block);
const carriers = CARRIERS.map(([cidr, offset]) => ({ range: block(cidr), offset }));
const loopback = block('::1/128');
const globalUnicast = block(GLOBAL_UNICAST);
const metadata: ReadonlySet<string> = new Set(METADATA_ADDRESSES);
const widestOpening = { ipv4: 8, ipv6: 7 };

/**
 * Reads an address literal in its one canonical spelling (RFC 5952 for IPv6). Null for everything else, also for what
 * inet_aton, a URL parser or getaddrinfo would accept: octal, hex, short forms, leading zeros, zone ids.
 */
export function parseLiteral(text: string): { address: string; family: 4 | 6 } | null {
  const family = isIP(text);
  if (family === 0 || text.includes('%')) return null;
  return ipaddr.parse(text).toString() === text ? { address: text, family: family as 4 | 6 } : null;
}

/** True for text that some parser takes for an address, canonical or not, or that only an address could mean. */
export function looksLikeAddress(text: string): boolean {
  if (/[:%[\]]/.test(text)) return true;
  const last = text.replace(/\.$/, '').split('.').at(-1) ?? '';
  // The rule of the URL standard: a host whose last label is a number is an IPv4 address or an error, never a name.
  return /^(\d+|0x[0-9a-f]*)$/i.test(last);
}

/**
 * Reads one entry of `allowPrivate`: canonical address, slash, prefix length, no bit set beyond the prefix.
 * Throws a TypeError where the text is not that, a RangeError where the range cannot be opened.
 */
export function parseRange(text: string): Range {
  const parts = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text);
  const literal = parts && parseLiteral(parts[1] ?? '');
  const bits = literal?.family === 4 ? 32 : 128;
  const prefix = Number(parts?.[2]);
  if (!literal || prefix > bits) {
    throw new TypeError('must be a range like "10.20.0.0/16" or "fd12:3456::/48"; a single address ends in /32 or /128');
  }
  const range = { network: ipaddr.parse(literal.address), prefix };
  const kind = range.network.kind();
  if (networkOf(range.network, prefix) !== literal.address) {
    throw new TypeError(`has bits set beyond its prefix; write "${networkOf(range.network, prefix)}/${prefix}"`);
  }
  if (prefix < widestOpening[kind]) throw new RangeError(`is wider than /${widestOpening[kind]}`);
  if (neverOpened.some((closed) => contains(closed, range.network))) {
    throw new RangeError(`cannot be opened: ${specialReason(range.network) ?? 'reserved'}`);
  }
  return range;
}

/**
 * Whether a connection to this address may be made: null when it may, else the reason in a few words.
 * Every spelling of an address is judged by its bits; what is no address is refused.
 */
export function refusal(text: string, rules: AddressRules): string | null {
  if (isIP(text) === 0 || text.includes('%')) return 'malformed address';
  return judge(ipaddr.parse(text), rules);
}

function judge(address: Address, rules: AddressRules): string | null {
  const text = address.toString();
  if (neverOpened.some((range) => contains(range, address))) return specialReason(address) ?? 'reserved';
  const named = rules.open.some((range) => isSingle(range) && contains(range, address));
  if (!named && metadata.has(text)) return 'metadata service';
  if (!named && rules.own.has(text)) return 'address of the host itself';
  const reason = specialReason(address);
  if (reason !== null && !rules.open.some((range) => contains(range, address))) return reason;
  const inner = carried(address);
  const innerReason = inner && judge(inner, rules);
  return innerReason ? `${reason ?? 'carrier'} of ${inner.toString()}: ${innerReason}` : null;
}

function specialReason(address: Address): string | null {
  const found = special.find(({ range }) => contains(range, address));
  if (found) return found.reason;
  return address.kind() === 'ipv6' && !contains(globalUnicast, address) ? `outside ${GLOBAL_UNICAST}` : null;
}

function carried(address: Address): ipaddr.IPv4 | null {
  const carrier = carriers.find(({ range }) => contains(range, address));
  // Of ::/96 loopback is cut out; it carries nothing.
  if (!carrier || contains(loopback, address)) return null;
  return new ipaddr.IPv4(address.toByteArray().slice(carrier.offset, carrier.offset + 4));
}

export function contains(range: Range, address: Address | string): boolean {
  const member = typeof address === 'string' ? ipaddr.parse(address) : address;
  if (member.kind() !== range.network.kind()) return false;
  return (member as ipaddr.IPv6).match(range.network as ipaddr.IPv6, range.prefix);
}

function isSingle(range: Range): boolean {
  return range.prefix === (range.network.kind() === 'ipv4' ? 32 : 128);
}

function networkOf(address: Address, prefix: number): string {
  const bytes = address.toByteArray().map((byte, index) => {
    const kept = Math.min(8, Math.max(0, prefix - index * 8));
    return byte & (0xff00 >> kept) & 0xff;
  });
  return ipaddr.fromByteArray(bytes).toString();
}

function block(cidr: string): Range {
  const [network, prefix] = ipaddr.parseCIDR(cidr);
  return { network, prefix };
}
