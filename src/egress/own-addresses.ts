import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/**
 * All addresses at which this host answers, but loopback, in canonical text. Services that listen on every interface
 * are reachable there. os.networkInterfaces() leaves out interfaces without a carrier (an idle docker0), which answer all
 * the same; the kernel's own tables have them.
 */
export async function ownAddresses(): Promise<Set<string>> {
  const found = new Set<string>();
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { address } of addresses ?? []) add(found, address.split('%')[0] ?? '');
  }
  const [trie, inet6, routes6] = await Promise.all(['/proc/net/fib_trie', '/proc/net/if_inet6', '/proc/net/ipv6_route'].map(kernelTable));
  for (const address of localAddresses(trie ?? '')) add(found, address);
  for (const [, digits] of (inet6 ?? '').matchAll(/^([0-9a-f]{32}) /gm)) add(found, colons(digits));
  for (const digits of localRoutes(routes6 ?? '')) add(found, colons(digits));
  return found;
}

/**
 * `ownAddresses`, read at most once in `ageMs`: reading them takes longer than connecting. Who relies on it has to look once
 * more at the connection itself (`isOwnConnection`).
 */
export function recentOwnAddresses(ageMs = 1000, read: () => Promise<ReadonlySet<string>> = ownAddresses): () => Promise<ReadonlySet<string>> {
  let last: { at: number; addresses: Promise<ReadonlySet<string>> } | null = null;
  return () => {
    const now = performance.now();
    if (last !== null && now - last.at < ageMs) return last.addresses;
    const mine = { at: now, addresses: read() };
    last = mine;
    // A failure is for those who asked, not for those to come.
    mine.addresses.catch(() => {
      if (last === mine) last = null;
    });
    return mine.addresses;
  };
}

/** True where the other end is this machine itself: the kernel connects such an address from the same one. */
export function isOwnConnection({ localAddress, remoteAddress }: Pick<Socket, 'localAddress' | 'remoteAddress'>): boolean {
  return remoteAddress !== undefined && remoteAddress === localAddress && ipaddr.parse(remoteAddress).range() !== 'loopback';
}

/** The tree's leaves: `|-- ADDRESS`, then a line for each prefix length that a route has there. */
function* localAddresses(trie: string): Generator<string> {
  let leaf = '';
  for (const line of trie.split('\n')) {
    const text = line.trim();
    if (text.startsWith('|-- ')) leaf = text.slice(4);
    else if (text === '/32 host LOCAL') yield leaf;
  }
}

/** Addresses that no interface carries and that are routed to this host all the same, as a cloud's agent does for a forwarded one. */
function* localRoutes(table: string): Generator<string> {
  for (const line of table.split('\n')) {
    const [digits = '', length, , , , , , , flags = '0'] = line.trim().split(/\s+/);
    if (length === '80' && (Number.parseInt(flags, 16) & RTF_LOCAL) !== 0) yield digits;
  }
}

/** include/uapi/linux/ipv6_route.h */
const RTF_LOCAL = 0x8000_0000;

function colons(digits = ''): string {
  return digits.replace(/(.{4})(?=.)/g, '$1:');
}

function add(found: Set<string>, text: string): void {
  if (!ipaddr.isValid(text)) return;
  const address = ipaddr.parse(text);
  if (address.range() !== 'loopback') found.add(address.toString());
}

async function kernelTable(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    // A kernel without IPv6, or a /proc without net: os.networkInterfaces() stands alone then.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
