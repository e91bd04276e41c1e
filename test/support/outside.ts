import { execa } from 'execa';

export interface OutsideOptions {
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  input?: string;
  timeoutMs?: number;
}

export interface OutsideResult {
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  stdout: string;
  stderr: string;
}

/**
 * The control of an escape test: the same program with no fence at all, as this user, with an environment as clean as
 * the sandbox's, but for RINGFENCE_CGROUP: the program may be a host of its own. Never for hogs, bombs and floods: their control is a sandbox with just that limit raised.
 */
export async function runOutside(command: string, options: OutsideOptions = {}): Promise<OutsideResult> {
  const { args = [], env = {}, cwd, input = '', timeoutMs = 20_000 } = options;
  const result = await execa(command, args, {
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...cgroupOfThisLane(), ...env },
    extendEnv: false,
    ...(cwd === undefined ? {} : { cwd }),
    input,
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    maxBuffer: 2 ** 24,
    stripFinalNewline: false,
    reject: false,
  });
  return {
    exitCode: result.exitCode ?? null,
    signal: result.signal ?? null,
    timedOut: result.timedOut,
    stdout: result.stdout,
    stderr: result.stderr,
  };
}

function cgroupOfThisLane(): Record<string, string> {
  const directory = process.env['RINGFENCE_CGROUP'];
  return directory === undefined ? {} : { RINGFENCE_CGROUP: directory };
}
