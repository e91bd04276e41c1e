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
    .replaceAll('network: "host"', '--network host')
    // What these two ask for is what a run has without the flag.
    .replaceAll('unless keepOutput is false', 'with --json')
    .replaceAll('unless cwd is given', 'with --no-cwd')
    .replaceAll('in env that', 'by --env that')
    .replace(/^cwd\b/, '--cwd')
    .replace(/^command\b/, 'the command')
    .replace(/^env\./, '--env ');
}

/** The same for `ringfence eval`, whose functions have no network but the hosts they are allowed. */
export function inEvalFlags(message: string): string {
  return message.replaceAll(', or use network: "host"', '').replace(/\bcapabilities\.(net|import)\b/g, '--$1');
}
