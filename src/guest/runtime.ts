import { harnessScript } from './harness-files.js';
import type { HarnessFile } from './harness-files.js';

/** What the two runtimes differ in, seen from the host. */
export interface Runtime {
  name: 'deno' | 'node';
  /** Absolute path, or a name to be found in PATH. */
  command: string;
  /** Files of the sandbox: the harness. */
  files: HarnessFile[];
  /** All that the guest finds in its environment. */
  env(setting: Setting): Record<string, string>;
  /** Processes and threads; measured: Deno has up to 11, Node 12. */
  pids: number;
  /**
   * MiB that the cgroup gets beyond the heap, so that a heap that is full ends the function before the kernel does.
   * Measured as the peak of functions that fill their heap, less the heap.
   */
  overheadMb(memoryMb: number): number;
  args(setting: Setting): string[];
}

/** What the runtime loads before it says to be ready: nothing, what every function needs, or Node's part of Deno too. */
export type Rehearsal = 'none' | 'plain' | 'node';

export interface Setting {
  memoryMb: number;
  /** `host:port` */
  net: readonly string[];
  import: readonly string[];
  /** Where the channel is, on the sandbox's loopback. */
  port: number;
  rehearse: Rehearsal;
  /** The channel is among others': say the password that standard input holds. */
  password: boolean;
}

/** Nothing of the host's own environment; both directories are the sandbox's. */
export const GUEST_ENVIRONMENT = { PATH: '/usr/bin:/bin', HOME: '/tmp', TMPDIR: '/tmp', NO_COLOR: '1' };

export const GUEST_PIDS = 64;

export function nodeRuntime(command: string): Runtime {
  const harness = harnessScript('node');
  return {
    name: 'node',
    command,
    files: [harness],
    env: () => GUEST_ENVIRONMENT,
    pids: GUEST_PIDS,
    overheadMb: (memoryMb) => 64 + Math.ceil(memoryMb / 12),
    args: (setting) => [`--max-old-space-size=${setting.memoryMb}`, harness.path, ...harnessArgs(setting)],
  };
}

const REHEARSALS: Record<Rehearsal, string[]> = { none: [], plain: ['rehearse'], node: ['rehearse-node'] };

/** What the harness is told on its command line. */
export function harnessArgs({ port, rehearse, password }: Setting): string[] {
  return [String(port), ...REHEARSALS[rehearse], ...(password ? ['password'] : [])];
}
