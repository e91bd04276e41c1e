import type { Connection } from '../run/result.js';

const MOST_LINES = 10;

/**
 * What was refused, a line for each host and reason with the most frequent first, ready for stderr: empty when nothing was.
 * Where an entry in the allowlist would help, the line ends with it.
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

function describe({ host, port, reason }: Connection): string {
  const shown = host.includes(':') ? `[${host}]` : host;
  const target = port === 0 ? shown : `${shown}:${port}`;
  const entry = reason.endsWith('not in the allowlist') ? `; to allow it: --allow ${target}` : '';
  return `refused ${target}: ${reason}${entry}`;
}
