import type { Connection } from '../run/result.js';
import { NOT_TAKEN } from './relay.js';
import { allowedName, allowsLiteral, compilePolicy, ruleForName } from './policy.js';
import type { EgressOptions, Policy } from './policy.js';

const MOST_LINES = 10;
/** What the log says of an allowed attempt that nobody answered: the failure of a call, or the time that it took. */
const UNREACHED = /^(?:connect |not connected within )/;

/** What a command calls its flags for an allowlist; null where it has none. */
export interface AllowFlags {
  allow: string;
  allowPrivate: string | null;
}

const RUN_FLAGS: AllowFlags = { allow: '--allow', allowPrivate: '--allow-private' };

/**
 * What was refused, reached nobody or was not delivered, a line for each host and reason with the most frequent first, ready
 * for stderr: empty when there is nothing of that. Where flags of the command would help, the line ends with them.
 *
 * @param own addresses of this host (`ownAddresses`): no flags are told for them
 */
export function failedSummary(connections: readonly Connection[], own: ReadonlySet<string> = new Set(), flags: AllowFlags = RUN_FLAGS): string[] {
  const counts = new Map<string, number>();
  for (const connection of connections) {
    if (connection.verdict !== 'refused' && !UNREACHED.test(connection.reason) && !isCutShort(connection)) continue;
    const line = describe(connection, own, flags);
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  const lines = [...counts].sort(([, left], [, right]) => right - left).map(([line, count]) => (count === 1 ? line : `${line} (${count} times)`));
  if (lines.length <= MOST_LINES) return lines;
  return [...lines.slice(0, MOST_LINES), `and ${lines.length - MOST_LINES} more`];
}

/** True where bytes of the guest's were lost, of which it knew nothing. */
export function isCutShort({ reason }: Connection): boolean {
  return reason === NOT_TAKEN;
}

function describe({ host, port, address, verdict, reason }: Connection, own: ReadonlySet<string>, names: AllowFlags): string {
  const shown = host.includes(':') ? `[${host}]` : host;
  const target = port === 0 ? shown : `${shown}:${port}`;
  if (verdict === 'allowed') return `${reason === NOT_TAKEN ? 'not all was delivered to' : 'could not connect to'} ${target}: ${reason}`;
  const flags = flagsFor({ host, port, target, address, reason }, own, names);
  return `refused ${target}: ${reason}${flags === null ? '' : `; to allow it: ${flags}`}`;
}

/** Nobody is talked into opening anything else: loopback, link-local and metadata addresses are the host's and the cloud's own. */
const PRIVATE = / may not be reached: (private|unique local)$/;

type Refused = Pick<Connection, 'host' | 'port' | 'address' | 'reason'> & { target: string };

/** Null where no flag would help: never one that the command line would then refuse, or that lets in more than was asked for. */
function flagsFor({ host, port, target, address, reason }: Refused, own: ReadonlySet<string>, { allow, allowPrivate }: AllowFlags): string | null {
  if (address !== null && own.has(address)) return null;
  const range = address === null || allowPrivate === null ? null : `${address}/${address.includes(':') ? 128 : 32}`;
  if (PRIVATE.test(reason)) return range === null ? null : `${allowPrivate} ${range}`;
  if (!reason.endsWith('not in the allowlist')) return null;
  const judged = judge({ allow: [target] });
  if (typeof judged !== 'string') return lets(judged, host, port) ? `${allow} ${target}` : null;
  if (range === null || !PRIVATE.test(judged)) return null;
  const opened = judge({ allow: [target], allowPrivate: [range] });
  return typeof opened !== 'string' && lets(opened, host, port) ? `${allow} ${target} ${allowPrivate} ${range}` : null;
}

/** What the host was asked for is the guest's own wording: a star in it, or an address for a name, would be no entry for itself. */
function lets(policy: Policy, host: string, port: number): boolean {
  if (port === 0) return allowedName(policy, host) !== null;
  return allowsLiteral(policy, host, port) || ruleForName(policy, host, port) !== null;
}

/** What is wrong with the options, where they are refused. */
function judge(options: EgressOptions): Policy | string {
  try {
    return compilePolicy(options);
  } catch (error) {
    // A TypeError or RangeError: that is the question.
    return (error as Error).message;
  }
}
