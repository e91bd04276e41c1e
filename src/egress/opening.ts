/** What the first bytes of a stream are, as far as servers are known to take them. */
export type OpeningKind = 'more' | 'other' | 'records' | 'sslv2' | 'odd';

const FIRST_RECORD = 20;
const LAST_RECORD = 24;
const ALERT_RECORD = 21;
const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;

/**
 * `records`: TLS. `sslv2`: a ClientHello in SSLv2's format, which OpenSSL up to 3 answers with TLS and which has no room for
 * a server name. `odd`: a record that says it is no TLS, but that lenient servers read (Go's looks at the version's
 * first four bits only, and skips warnings that come first): taken for another protocol it would carry a hello past the check.
 */
export function openingKind(bytes: Uint8Array): OpeningKind {
  const [first, second] = bytes;
  if (first === undefined) return 'more';
  if (first >= FIRST_RECORD && first <= LAST_RECORD) {
    if (second === undefined) return 'more';
    if (second === 3) return 'records';
    return second < 0x10 ? lenient(bytes) : 'other';
  }
  return first >= 0x80 && first <= 0xc0 ? sslv2(bytes) : 'other';
}

function lenient(bytes: Uint8Array): OpeningKind {
  const [type = 0, , , high, low, payload] = bytes;
  if (type !== HANDSHAKE_RECORD && type !== ALERT_RECORD) return 'other';
  if (high === undefined || low === undefined || payload === undefined) return 'more';
  const length = high * 256 + low;
  if (type === HANDSHAKE_RECORD) return payload === CLIENT_HELLO && length > 0 ? 'odd' : 'other';
  return length === 2 && (payload === 1 || payload === 2) ? 'odd' : 'other';
}

function sslv2(bytes: Uint8Array): OpeningKind {
  const [, , type, major, minor] = bytes;
  if (type === undefined) return 'more';
  if (type !== CLIENT_HELLO) return 'other';
  if (major === undefined || minor === undefined) return 'more';
  return major === 3 || (major === 0 && minor === 2) ? 'sslv2' : 'other';
}
