import { nearest, quotedHost, shown } from '../run/option-words.js';
import { isPlainObject } from '../run/plain-object.js';
import type { Connection } from '../run/result.js';
import { contains, parseLiteral, parseRange, refusal } from './addresses.js';
import type { AddressRules, Range } from './addresses.js';
import { parseEntry } from './entry.js';
import type { Entry } from './entry.js';
import { asciiName, canonicalName, isMetadataName } from './host-name.js';
import { GUEST_RANGE } from './name-table.js';

/** `network` when it is an allowlist: any TCP client inside reaches exactly these hosts, by any library and without a proxy. */
export interface EgressOptions {
  /**
   * `api.example.com` (ports 443 and 80), `api.example.com:8443`, `*.example.com` (any depth below it, not itself), an IP
   * literal with or without a port (`8.8.4.4:853`, `[2606:4700:4700::1111]:443`). TLS must name the host that was dialled;
   * `sni: 'any'` turns that off for one. At most 100 different ports; an empty list is no network at all.
   */
  allow: readonly (string | { host: string; sni?: 'any' | undefined })[];
  /** Ranges that allowed hosts may have their addresses in besides the public ones, for example `10.20.0.0/16`. */
  allowPrivate?: readonly string[] | undefined;
  /** Allowed names with an address of their own instead of what DNS says, for example `{ 'api.test': '10.20.0.5' }`. */
  hosts?: Readonly<Record<string, string>> | undefined;
  /** Connections open at one time. Default: 64. */
  maxConnections?: number | undefined;
  /**
   * Milliseconds without a byte after which a connection ends. Default: 120000. Eight times as long while bytes wait for a reader:
   * what it takes out of the kernel's buffers does not show at once.
   */
  idleTimeoutMs?: number | undefined;
  /** Milliseconds for resolving and connecting together. Default: 10000. */
  connectTimeoutMs?: number | undefined;
  /** Bytes of the whole run, both directions together. Default: no limit. */
  maxBytes?: number | undefined;
  /**
   * Called with each attempt, allowed or refused, when it is over. If it throws, or a promise that it returns is
   * rejected, the run is killed and rejects with that; such promises are waited for, two seconds after the end at most.
   */
  onConnection?: ((connection: Connection) => unknown) | undefined;
}

/** `match`: the TLS server name must be the name that was dialled. */
export type SniRule = 'match' | 'any';
type Ports = ReadonlyMap<number, SniRule>;

/** The options after validation: every host canonical, every address and range judged. */
export interface Policy {
  names: ReadonlyMap<string, Ports>;
  /** By the part below the star. */
  wildcards: ReadonlyMap<string, Ports>;
  literals: ReadonlyMap<string, Ports>;
  pins: ReadonlyMap<string, string>;
  open: readonly Range[];
  /** What needs a listening socket inside the sandbox, by family; ascending. */
  ports: ListenPorts;
  limits: Limits;
  onConnection: ((connection: Connection) => unknown) | null;
}

export interface ListenPorts {
  ipv4: readonly number[];
  ipv6: readonly number[];
}

export interface Limits {
  maxConnections: number;
  idleTimeoutMs: number;
  connectTimeoutMs: number;
  maxBytes: number;
}

/** Different ports in one allowlist. Each is a socket for either family, and the kernel passes at most 253 in one message. */
export const MAX_PORTS = 100;
export const allowlistFields = ['allow', 'allowPrivate', 'hosts', 'maxConnections', 'idleTimeoutMs', 'connectTimeoutMs', 'maxBytes', 'onConnection'] as const satisfies readonly (keyof EgressOptions)[];
const LONGEST_TIMER = 2 ** 31 - 1;

/**
 * Validates the options. Throws a TypeError (not of the expected form) or a RangeError (well formed, but not allowed)
 * whose message names field and index: `network.allow[2] ("*.com") would allow ...`. With the host's `own` addresses
 * (`ownAddresses()`) literals among them are refused here already; connections to them are in any case.
 */
export function compilePolicy(options: EgressOptions, own: ReadonlySet<string> = new Set()): Policy {
  if (!isPlainObject(options)) throw wrongType('network', 'must be { allow: [...] }', options);
  refuseUnknown('network', options, allowlistFields);
  const open = list(options.allowPrivate === undefined ? [] : options.allowPrivate, 'network.allowPrivate', 'an array of ranges').map((text, index) => {
    const where = `network.allowPrivate[${index}]`;
    if (typeof text !== 'string') throw wrongType(where, 'must be a string', text);
    return named(`${where} (${quotedHost(text)})`, () => parseRange(text));
  });
  const policy: Building = { names: new Map(), wildcards: new Map(), literals: new Map(), open, own };
  list(options.allow, 'network.allow', 'an array of strings').forEach((item, index) => {
    const { host, sni } = allowItem(item, index);
    named(`network.allow[${index}] (${quotedHost(host)})`, () => addEntry(policy, parseEntry(host), sni));
  });
  const ports = listenPorts(policy);
  const different = new Set([...ports.ipv4, ...ports.ipv6]).size;
  if (different > MAX_PORTS) throw new RangeError(`network.allow must name at most ${MAX_PORTS} different ports, got ${different}`);
  if (options.onConnection !== undefined && typeof options.onConnection !== 'function') {
    throw wrongType('network.onConnection', 'must be a function', options.onConnection);
  }
  const { names, wildcards, literals } = policy;
  return { names, wildcards, literals, open, ports, pins: pins(options.hosts, policy), limits: limits(options), onConnection: options.onConnection ?? null };
}

/** The ports that need a listening socket inside the sandbox, by family. */
export function listenPorts(policy: Pick<Policy, 'names' | 'wildcards' | 'literals'>): ListenPorts {
  const ipv4 = new Set<number>();
  const ipv6 = new Set<number>();
  for (const ports of [...policy.names.values(), ...policy.wildcards.values()]) for (const port of ports.keys()) ipv4.add(port);
  for (const [address, ports] of policy.literals) for (const port of ports.keys()) (address.includes(':') ? ipv6 : ipv4).add(port);
  const ascending = (a: number, b: number) => a - b;
  return { ipv4: [...ipv4].sort(ascending), ipv6: [...ipv6].sort(ascending) };
}

/** The canonical form of a name that the guest may look up, or null. */
export function allowedName(policy: Policy, text: string): string | null {
  const name = asciiName(text);
  return name !== null && portsOfName(policy, name).length > 0 ? name : null;
}

/** The rule for a connection to a canonical name; the exact name before wildcards, the longer wildcard before the shorter. */
export function ruleForName(policy: Policy, name: string, port: number): SniRule | null {
  for (const ports of portsOfName(policy, name)) {
    const rule = ports.get(port);
    if (rule) return rule;
  }
  return null;
}

/** Whether an address itself is in the allowlist, with this port. */
export function allowsLiteral(policy: Policy, address: string, port: number): boolean {
  return policy.literals.get(address)?.has(port) ?? false;
}

function portsOfName(policy: Policy, name: string): Ports[] {
  // A wildcard over a cloud's internal domain does not hand out the credentials there.
  if (isMetadataName(name)) return [];
  const labels = name.split('.');
  const parents = labels.slice(1).map((_, index) => policy.wildcards.get(labels.slice(index + 1).join('.')));
  return [policy.names.get(name), ...parents].filter((ports) => ports !== undefined);
}

type Building = Record<'names' | 'wildcards' | 'literals', Map<string, Map<number, SniRule>>> & AddressRules;

function addEntry(policy: Building, entry: Entry, sni: SniRule): void {
  if (entry.kind === 'literal') {
    const reason = contains(GUEST_RANGE, entry.host) ? 'in the range the sandbox uses itself' : refusal(entry.host, policy);
    if (reason) throw new RangeError(`may not be reached: ${reason}`);
  }
  const table = { name: policy.names, wildcard: policy.wildcards, literal: policy.literals }[entry.kind];
  const ports = table.get(entry.host) ?? new Map<number, SniRule>();
  table.set(entry.host, ports);
  for (const port of entry.ports) {
    if ((ports.get(port) ?? sni) !== sni) throw new RangeError(`gives port ${port} another "sni" than an earlier entry`);
    ports.set(port, sni);
  }
}

function allowItem(item: unknown, index: number): { host: string; sni: SniRule } {
  if (typeof item === 'string') return { host: item, sni: 'match' };
  const where = `network.allow[${index}]`;
  if (!isPlainObject(item)) throw wrongType(where, 'must be a string or { host, sni }', item);
  refuseUnknown(where, item, ['host', 'sni']);
  const { host, sni } = item;
  if (typeof host !== 'string') throw wrongType(`${where}.host`, 'must be a string', host);
  if (sni !== undefined && sni !== 'any') throw wrongType(`${where}.sni`, 'must be "any" or absent', sni);
  return { host, sni: sni ?? 'match' };
}

function pins(hosts: unknown, policy: Building): Map<string, string> {
  const result = new Map<string, string>();
  if (hosts === undefined) return result;
  if (!isPlainObject(hosts)) throw wrongType('network.hosts', 'must be an object of addresses by name', hosts);
  for (const [key, address] of Object.entries(hosts)) {
    const where = `network.hosts[${quotedHost(key)}]`;
    if (typeof address !== 'string') throw wrongType(where, 'must be a string', address);
    named(where, () => {
      const name = canonicalName(key);
      if (!parseLiteral(address)) throw new TypeError(`must be a canonical IP address, got ${quotedHost(address)}`);
      const reason = refusal(address, policy);
      if (reason) throw new RangeError(`may not be pinned to ${address}: ${reason}`);
      if (result.has(name)) throw new RangeError('is pinned twice');
      if (portsOfName(policy as unknown as Policy, name).length === 0) throw new RangeError('is not in network.allow');
      result.set(name, address);
    });
  }
  return result;
}

function limits(options: EgressOptions): Limits {
  return {
    maxConnections: positive(options.maxConnections, 'maxConnections', 64, 65536),
    idleTimeoutMs: positive(options.idleTimeoutMs, 'idleTimeoutMs', 120_000, LONGEST_TIMER),
    connectTimeoutMs: positive(options.connectTimeoutMs, 'connectTimeoutMs', 10_000, LONGEST_TIMER),
    maxBytes: positive(options.maxBytes, 'maxBytes', Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER),
  };
}

function positive(value: unknown, field: string, fallback: number, most: number): number {
  if (value === undefined) return fallback;
  const where = `network.${field}`;
  if (typeof value !== 'number') throw wrongType(where, 'must be a positive integer', value);
  if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`${where} must be a positive integer, got ${value}`);
  if (value > most) throw new RangeError(`${where} must be at most ${most}, got ${value}`);
  return value;
}

function list(value: unknown, field: string, expected: string): readonly unknown[] {
  if (!Array.isArray(value)) throw wrongType(field, `must be ${expected}`, value);
  // Holes are no entries either.
  return [...(value as unknown[])];
}

function refuseUnknown(section: string, options: object, known: readonly string[]): void {
  const key = Object.keys(options).find((each) => !known.includes(each));
  if (key === undefined) return;
  const names = known.map((name) => `${section}.${name}`);
  const meant = nearest(key, names);
  const name = /^[\w$]+$/.test(key) ? `${section}.${key}` : `${section}[${quotedHost(key)}]`;
  throw new TypeError(`${name} is not a known option; ${meant === null ? `known are ${names.join(', ')}` : `did you mean ${meant}?`}`);
}

function wrongType(field: string, expected: string, value: unknown): TypeError {
  return new TypeError(`${field} ${expected}, got ${shown(value, 'network')}`);
}

function named<T>(field: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const message = `${field} ${(error as Error).message}`;
    throw error instanceof RangeError ? new RangeError(message) : new TypeError(message);
  }
}
