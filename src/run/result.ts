/** How a run ended. The first cause wins; later ones do not overwrite it. */
export type Outcome =
  | 'exit'
  | 'timeout'
  | 'canceled'
  | 'overflow-stdout'
  | 'overflow-stderr'
  | 'spawn-error'
  | 'out-of-memory'
  | 'cpu-limit';

/** What the kernel enforces on a run, in the order of README's table. */
export const fences = ['privileges', 'identity', 'filesystem', 'network', 'pids', 'memory', 'cpu', 'syscalls', 'landlock'] as const;

/** One thing the kernel enforces on a run. */
export type Fence = (typeof fences)[number];

export interface FenceReport {
  /** `enforced`: verified for this very run; `disabled`: not asked for, or taken down by the caller; `unavailable`: this host cannot. */
  status: 'enforced' | 'disabled' | 'unavailable';
  /** The mechanism, for example `netns` or `cgroup-v2`; for the other two states the reason in a few words. */
  by: string;
}

export type Enforcement = Record<Fence, FenceReport>;

/** What the run used, from the kernel's own counters; null where this host does not tell. */
export interface Usage {
  /** Milliseconds from launch to the end of the sandbox. */
  wallMs: number;
  cpuUserMs: number | null;
  cpuSystemMs: number | null;
  peakMemoryBytes: number | null;
  /** Most processes and threads at one time, process 1 of the sandbox included. */
  peakPids: number | null;
  oomKills: number | null;
  /** How often a fork or a new thread was refused by the process limit. */
  pidsRefused: number | null;
}

/** Why the sandbox could not be set up or the command not be started. */
export interface SandboxFailure {
  /** What to branch on: a code of `src/errors.ts`. */
  code: string;
  /** The stage of the launch that failed (README lists them), or null when no stage was reached. */
  stage: string | null;
  syscall: string | null;
  /** The errno's name, for example `ENOENT`, or null. */
  errno: string | null;
  /** What to do about it, ready to be typed where that is possible. */
  hint: string;
}

/** One attempt of the guest to connect, or to look a name up, allowed or refused. */
export interface Connection {
  /** Milliseconds since the epoch. */
  at: number;
  /** The name that was looked up, or the address that was dialled without one. */
  host: string;
  /** 0 for a name that was looked up only. */
  port: number;
  /** Where the host connected, or what it would not connect to; null where it did not come to that. */
  address: string | null;
  verdict: 'allowed' | 'refused';
  /** Why it was refused, or how it ended, in a few words. */
  reason: string;
  bytesSent: number;
  bytesReceived: number;
  durationMs: number;
}

/** The result of one run: always this shape, whatever happened. */
export interface SandboxResult {
  outcome: Outcome;
  /** Set on `exit` only, and null there when the guest died of a signal. */
  exitCode: number | null;
  /** Set on `exit` only: the signal the guest died of, for example `SIGSEGV`. */
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
  durationMs: number;
  cwd: string;
  cwdOwnedBySandbox: boolean;
  nodeHeapMbApplied: number | null;
  /** Not empty on `spawn-error` only. */
  errorMessage: string;
  error: SandboxFailure | null;
  usage: Usage;
  enforcement: Enforcement;
  /** With an allowlist, each attempt to connect, in the order of their ends; the first 1000. */
  connections: Connection[];
  /** Attempts beyond those in `connections`, those included that came faster than anybody could look at them, and datagrams that repeat another. */
  connectionsOmitted: number;
}
