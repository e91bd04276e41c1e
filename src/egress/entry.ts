import { getPublicSuffix } from 'tldts';

import { quotedHost } from '../run/option-words.js';
import { looksLikeAddress, parseLiteral } from './addresses.js';
import { canonicalName, isLocalName, isMetadataName } from './host-name.js';

/** One allowlist entry. `host` is canonical; of a wildcard it is the part below the star. */
export interface Entry {
  kind: 'name' | 'wildcard' | 'literal';
  host: string;
  ports: readonly number[];
}

const DEFAULT_PORTS: readonly number[] = [443, 80];

/**
 * Reads `host`, `host:port`, `*.host`, `*.host:port`, `1.2.3.4:port`, `[v6]:port` and their forms without a port
 * (443 and 80). Throws a TypeError for what is none of them, a RangeError for what may not be allowed.
 */
export function parseEntry(text: string): Entry {
  if (text === '') throw new TypeError('is empty');
  if (/[\u0000-\u0020\u007f\u0080-\u00a0\u2028\u2029]/.test(text)) throw new TypeError('contains a space or a control character');
  if (text.includes('://')) throw new TypeError('is a URL; give the host alone');
  if (text.includes('@')) throw new TypeError('contains userinfo; give the host alone');
  if (/[/\\?#]/.test(text)) throw new TypeError('contains a path; give the host alone');
  if (text.includes('%')) throw new TypeError('contains a percent sign or a zone id');
  const { host, ports, bracketed } = splitPort(text);
  const literal = parseLiteral(host);
  if (literal && bracketed === (literal.family === 6)) return { kind: 'literal', host, ports };
  if (literal) throw new TypeError('has an IPv4 address in brackets');
  if (bracketed || looksLikeAddress(host)) {
    throw new TypeError('is not a canonical IP address (dotted decimal, or RFC 5952: lower case, shortest form, no zone id)');
  }
  return host.includes('*') ? wildcard(host, ports) : exact(host, ports);
}

function splitPort(text: string): { host: string; ports: readonly number[]; bracketed: boolean } {
  const brackets = /^\[([^[\]]*)\](?::(.*))?$/s.exec(text);
  if (brackets) return { host: brackets[1] ?? '', ports: portsOf(brackets[2]), bracketed: true };
  // More than one colon without brackets can only be an IPv6 address, and then there is no port.
  if (text.split(':').length > 2) return { host: text, ports: DEFAULT_PORTS, bracketed: parseLiteral(text) !== null };
  const colon = text.indexOf(':');
  if (colon < 0) return { host: text, ports: DEFAULT_PORTS, bracketed: false };
  return { host: text.slice(0, colon), ports: portsOf(text.slice(colon + 1)), bracketed: false };
}

function portsOf(text: string | undefined): readonly number[] {
  if (text === undefined) return DEFAULT_PORTS;
  if (!/^[0-9]+$/.test(text) || (text.length > 1 && text.startsWith('0'))) throw new TypeError(`has a malformed port ${quotedHost(text)}`);
  const port = Number(text);
  if (port < 1 || port > 65535) throw new RangeError(`has port ${text}, which is outside 1-65535`);
  return [port];
}

function exact(text: string, ports: readonly number[]): Entry {
  const host = canonicalName(text);
  refuseReserved(host);
  return { kind: 'name', host, ports };
}

function wildcard(text: string, ports: readonly number[]): Entry {
  if (text === '*') throw new RangeError('would allow every host; name them, or use network: "host"');
  if (!text.startsWith('*.') || text.includes('*', 1)) throw new TypeError('may have one "*" only, as its whole first label');
  const host = canonicalName(text.slice(2));
  refuseReserved(host);
  if (!host.includes('.')) throw new RangeError(`would allow everything under the top-level name "${host}"`);
  // The probe catches bases all of whose children are public suffixes by a wildcard of the list.
  if (isPublicSuffix(host) || isPublicSuffix(`probe.${host}`)) {
    throw new RangeError(`would allow every registrant under the public suffix "${host}"`);
  }
  return { kind: 'wildcard', host, ports };
}

function refuseReserved(host: string): void {
  // After IDNA, because full-width digits and the like become an address only there.
  if (looksLikeAddress(host)) throw new TypeError('is not a canonical IP address');
  if (isMetadataName(host)) throw new RangeError('is a metadata service of a cloud');
  if (isLocalName(host)) throw new RangeError('is the sandbox itself');
}

// Both sections of the list: under a private suffix (github.io, s3.amazonaws.com) anyone can have a name too.
function isPublicSuffix(host: string): boolean {
  const options = { allowPrivateDomains: true, validateHostname: false, extractHostname: false, detectIp: false };
  return getPublicSuffix(host, options) === host;
}
