import { nameOf } from './paths.js';

/** What of the host's environment the guest gets. */
const INHERITED = ['PATH', 'HOME', 'TMPDIR'] as const;

export interface EnvironmentOptions {
  command: string;
  env: Readonly<Record<string, string>>;
  nodeHeapMb: number | null;
}

export interface GuestEnvironment {
  env: Record<string, string>;
  /** The `nodeHeapMb` that went into NODE_OPTIONS, null when the command is not Node. */
  nodeHeapMbApplied: number | null;
}

export function planEnvironment(
  options: EnvironmentOptions,
  hostEnv: Readonly<Record<string, string | undefined>>,
  execPath: string,
): GuestEnvironment {
  // No prototype: names are data, "__proto__" included.
  const env = Object.create(null) as Record<string, string>;
  for (const name of INHERITED) {
    const value = hostEnv[name];
    if (value !== undefined) env[name] = value;
  }
  for (const [name, value] of Object.entries(options.env)) env[name] = value;
  const { command, nodeHeapMb } = options;
  if (nodeHeapMb === null || (nameOf(command) !== 'node' && command !== execPath)) return { env, nodeHeapMbApplied: null };
  const given = env['NODE_OPTIONS'];
  const flag = `--max-old-space-size=${nodeHeapMb}`;
  env['NODE_OPTIONS'] = given === undefined || given === '' ? flag : `${given} ${flag}`;
  return { env, nodeHeapMbApplied: nodeHeapMb };
}
