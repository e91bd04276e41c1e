import type { Entry } from '../egress/entry.js';
import type { EgressOptions, Policy } from '../egress/policy.js';
import { compileNetwork } from '../run/network.js';

/** What the operator says about the network of all functions; which hosts it is, each request says. */
export type GuestNetwork = Omit<EgressOptions, 'allow'>;

export interface CompiledNetwork {
  /** The union of both axes: what the namespace carries. */
  network: 'none' | Policy;
  /** Each axis as `host:port`, for the runtime's own permissions. */
  net: string[];
  import: string[];
}

/** Why a request's hosts may not be allowed, from what `compileGuestNetwork` threw. */
export function egressProblem(error: unknown): string {
  // The entry itself, and not its place in a list that is ours.
  return `egress blocked: ${(error as Error).message.replace(/^network\.allow\[\d+\] (?:\(("[^"]*"…?)\) )?/, (_, entry?: string) => (entry === undefined ? '' : `${entry} `))}`;
}

/** @throws TypeError or RangeError whose message says which host may not be allowed, and why. */
export async function compileGuestNetwork(
  net: readonly string[],
  imports: readonly string[],
  { hosts = {}, ...rules }: GuestNetwork,
): Promise<CompiledNetwork> {
  const allow = [...net, ...imports];
  if (allow.length === 0) return { network: 'none', net: [], import: [] };
  const [{ parseEntry }, { allowedName }] = await Promise.all([import('../egress/entry.js'), import('../egress/policy.js')]);
  const policy = await compile({ ...rules, allow });
  // Only what is allowed can be pinned.
  const pins = Object.entries(hosts).filter(([name]) => allowedName(policy, name) !== null);
  return {
    network: pins.length === 0 ? policy : await compile({ ...rules, allow, hosts: Object.fromEntries(pins) }),
    net: net.flatMap((text) => spellings(parseEntry(text))),
    import: imports.flatMap((text) => spellings(parseEntry(text))),
  };
}

async function compile(options: EgressOptions): Promise<Policy> {
  const policy = await compileNetwork(options);
  if (typeof policy === 'string') throw new RangeError('names no host');
  return policy;
}

function spellings({ kind, host, ports }: Entry): string[] {
  const name = kind === 'wildcard' ? `*.${host}` : host.includes(':') ? `[${host}]` : host;
  return ports.map((port) => `${name}:${port}`);
}
