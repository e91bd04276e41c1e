import type { Connection } from '../run/result.js';
import { compilePolicy } from './policy.js';
import type { EgressOptions } from './policy.js';

const MOST_LINES = 10;

/**
 * What was refused, a line for each host and reason with the most frequent first, ready for stderr: empty when nothing was.
 * Where flags of `ringfence run` would help, the line ends with them.
 */
export function refusedSummary(connections: readonly Connection[]): string[] {
  const counts = new Map<string, number>();
  for (const connection of connections) {
    if (connection.verdict !== 'refused') continue;
    const line = describe(connection);
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  const lines = [...counts].sort(([, left], [, right]) => right - left).map(([line, count]) => (count === 1 ? line : `${line} (${count} times)`));
  if (lines.length <= MOST_LINES) return lines;
  return [...lines.slice(0, MOST_LINES), `and ${lines.length - MOST_LINES} more`];
}

function describe({ host, port, address, reason }: Connection): string {
  const shown = host.includes(':') ? `[${host}]` : host;
  const target = port === 0 ? shown : `${shown}:${port}`;
  const flags = flagsFor({ target, host, address, reason });
  return `refused ${target}: ${reason}${flags === null ? '' : `; to allow it: ${flags}`}`;
}

/** Null where no flag would help: never one that the command line would then refuse. */
function flagsFor({ target, host, address, reason }: Pick<Connection, 'host' | 'address' | 'reason'> & { target: string }): string | null {
  const range = address === null ? null : `${address}/${address.includes(':') ? 128 : 32}`;
  if (reason.endsWith('not in the allowlist')) {
    if (isValid({ allow: [target] })) return `--allow ${target}`;
    return range !== null && isValid({ allow: [target], allowPrivate: [range] }) ? `--allow ${target} --allow-private ${range}` : null;
  }
  // A name with a private address. What the host itself, or a cloud, answers there is for its administrator to think about.
  const isPrivate = range !== null && host !== address && / may not be reached: (private|unique local)/.test(reason);
  return isPrivate && isValid({ allow: [], allowPrivate: [range] }) ? `--allow-private ${range}` : null;
}

function isValid(options: EgressOptions): boolean {
  try {
    compilePolicy(options);
    return true;
  } catch {
    // TypeError or RangeError: that is the question.
    return false;
  }
}
