/** The library's name of each option, and the flag for it. */
export const flagByField = {
  'filesystem.read': '--read',
  'filesystem.write': '--write',
  'filesystem.tmpMb': '--tmp',
  'limits.memoryMb': '--memory',
  'limits.pids': '--pids',
  'limits.cpus': '--cpus',
  'limits.cpuTimeMs': '--cpu-time',
  'limits.openFiles': '--open-files',
  'limits.fileSizeMb': '--file-size',
  'network.allow': '--allow',
  'network.allowPrivate': '--allow-private',
  'network.hosts': '--host',
  timeoutMs: '--timeout',
  gracePeriodMs: '--grace',
  shutdownSignal: '--shutdown-signal',
  maxStdoutBytes: '--max-stdout',
  maxStderrBytes: '--max-stderr',
  nodeHeapMb: '--node-heap',
} as const;

const FIELD = new RegExp(
  `\\b(${Object.keys(flagByField).map((name) => name.replace('.', '\\.')).join('|')})\\b(?:\\[\\d+\\]|\\[("(?:[^"\\\\]|\\\\.)*"…?)\\])?`,
  'g',
);

/** A message of the library in the words of the command line. */
export function inFlags(message: string): string {
  return message
    .replace(FIELD, (_, field: keyof typeof flagByField, key: string | undefined) => (key === undefined ? flagByField[field] : `${flagByField[field]} (${key})`))
    .replaceAll("isolation: 'best-effort'", '--best-effort')
    .replaceAll('in env that', 'by --env that')
    .replace(/^cwd\b/, '--cwd')
    .replace(/^command\b/, 'the command')
    .replace(/^env\./, '--env ');
}
