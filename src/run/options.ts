import { constants as bufferLimits } from 'node:buffer';
import type { Readable } from 'node:stream';

import type { EgressOptions, Policy } from '../egress/policy.js';
import type { OnChunk } from './capture.js';
import { firstProblem } from './option-problem.js';
import { optionNames, optionsSchema } from './option-schema.js';

/** What `runSandboxed` takes. Only `command`, `args` and `timeoutMs` are required. */
export interface SandboxOptions {
  /** Absolute path, or a name looked up in the PATH that the guest will have. Never a shell, never relative to the cwd. */
  command: string;
  /** Passed on verbatim. */
  args: readonly string[];
  /**
   * Absolute path of a directory of the host, bound at the same path and left in place. Absent: the sandbox has one of its
   * own under `os.tmpdir()`, of which nothing remains afterwards.
   */
  cwd?: string | undefined;
  /** Bind a given `cwd` read-only. Default: false. */
  cwdReadOnly?: boolean | undefined;
  /** The guest gets these and the host's PATH, HOME and TMPDIR (which can be overridden by name); nothing else. */
  env?: Readonly<Record<string, string>> | undefined;
  /** Milliseconds of wall clock from the launch on, 1 to 2147483647. Activity does not reset it. */
  timeoutMs: number;
  /** The first, soft signal on a timeout or an abort; SIGKILL follows after `gracePeriodMs`. Default: `SIGTERM`. */
  shutdownSignal?: NodeJS.Signals | undefined;
  /** Milliseconds between the soft signal and SIGKILL, 0 to `timeoutMs` - 1. Default: 2000, or less with a shorter timeout. */
  gracePeriodMs?: number | undefined;
  /**
   * What the guest reads from its standard input. Absent: end of file at once. A Readable is destroyed with the run; one that
   * fails is an end of file where it failed. The bytes of a Uint8Array are not copied: leave them as they are until the run
   * is over.
   */
  stdin?: string | Uint8Array | Readable | undefined;
  /** Bytes of standard output to keep; one more ends the run as `overflow-stdout`. Default: 8 MiB. */
  maxStdoutBytes?: number | undefined;
  /** Bytes of standard error to keep; one more ends the run as `overflow-stderr`. Default: 1 MiB. */
  maxStderrBytes?: number | undefined;
  /** MiB of V8's old space for a command that is Node (base name `node`, or `process.execPath`); goes into NODE_OPTIONS. */
  nodeHeapMb?: number | undefined;
  /** Ends the run as `canceled`, softly at first like a timeout. */
  signal?: AbortSignal | undefined;
  /**
   * Called with the output as it arrives, inside the cap. While a promise that it returns is not settled nothing more is
   * read, which slows the guest down, and the result waits, unless the run was ended (timeout, abort). If it throws or
   * rejects, also when the guest has ended meanwhile, the run is killed and `runSandboxed` rejects with that. One promise
   * that is open for two seconds when the deadline has passed is given up, and the function is not called again.
   */
  onStdout?: ((chunk: Buffer) => unknown) | undefined;
  /** As `onStdout`, for standard error. */
  onStderr?: ((chunk: Buffer) => unknown) | undefined;
  /** False: the result's `stdout` and `stderr` stay empty, and the caps may be of any size. Default: true. */
  keepOutput?: boolean | undefined;
  /**
   * `none`: a network of its own with nothing but loopback. `host`: the host's network. `{ allow: [...] }`: a network of its
   * own in which exactly the named hosts can be reached, over TCP. Default: `none`.
   */
  network?: 'none' | 'host' | EgressOptions | undefined;
  /**
   * A system-call filter of the caller's own in place of the built-in one: the path of a profile in OCI seccomp format, as
   * Docker and podman take it.
   */
  seccomp?: { profile: string } | undefined;
  /** What the guest sees beyond the runtime's own files. */
  filesystem?:
    | {
        /** Absolute paths bound at the same path, read-only. A missing one is an error. */
        read?: readonly string[] | undefined;
        /** Absolute paths bound at the same path, read-write. A missing one is an error. */
        write?: readonly string[] | undefined;
        /** MiB shared by all scratch directories: /tmp, HOME, an owned cwd. Default: 256. */
        tmpMb?: number | undefined;
      }
    | undefined;
  /** What the kernel holds the whole process tree of the guest to. */
  limits?:
    | {
        /** MiB of memory, without swap, page cache and scratch files included. Default: 512. */
        memoryMb?: number | undefined;
        /** Processes and threads at one time. Default: 128. */
        pids?: number | undefined;
        /** Processors' worth of cpu time, 0.01 and up. Default: no limit. */
        cpus?: number | undefined;
        /** Milliseconds of cpu time of all processes together; more ends the run as `cpu-limit`. Default: no limit. */
        cpuTimeMs?: number | undefined;
        /** Open descriptors of each process. Default: 1024. */
        openFiles?: number | undefined;
        /** MiB that a single file can grow to. Default: no limit. */
        fileSizeMb?: number | undefined;
      }
    | undefined;
  /** `strict`: refuse to run where a fence cannot be had. `best-effort`: run with what there is, and report it. Default: `strict`. */
  isolation?: 'strict' | 'best-effort' | undefined;
}

/** The validated options of one run: defaults filled in, null where something is absent. */
export interface RunOptions {
  command: string;
  args: string[];
  /** null: a directory of the sandbox's own. */
  cwd: string | null;
  cwdReadOnly: boolean;
  env: Record<string, string>;
  timeoutMs: number;
  shutdownSignal: NodeJS.Signals;
  gracePeriodMs: number;
  stdin: string | Uint8Array | Readable | null;
  maxStdoutBytes: number;
  maxStderrBytes: number;
  nodeHeapMb: number | null;
  signal: AbortSignal | null;
  onStdout: OnChunk | null;
  onStderr: OnChunk | null;
  keepOutput: boolean;
  network: 'none' | 'host' | Policy;
  /** null: the built-in filter. */
  seccomp: { profile: string } | null;
  filesystem: { read: string[]; write: string[]; tmpMb: number };
  limits: {
    memoryMb: number;
    pids: number;
    cpus: number | null;
    cpuTimeMs: number | null;
    openFiles: number;
    fileSizeMb: number | null;
  };
  isolation: 'strict' | 'best-effort';
}

/** Options that are checked but for an allowlist, which `compileNetwork` checks. */
export type CheckedOptions = Omit<RunOptions, 'network'> & { network: 'none' | 'host' | EgressOptions };

/**
 * Checks the options of one run and fills in the defaults.
 *
 * @throws TypeError when a field has the wrong type, is missing or is not known; RangeError when its value is wrong. The
 *   message names the field, what was expected and what came.
 */
export function validateOptions(input: unknown): CheckedOptions {
  const parsed = optionsSchema.safeParse(input);
  if (!parsed.success) throw firstProblem(parsed.error.issues, input, optionNames);
  const { gracePeriodMs, ...options } = parsed.data;
  if (gracePeriodMs !== undefined && gracePeriodMs >= options.timeoutMs) {
    throw new RangeError(`gracePeriodMs (${gracePeriodMs}) must be < timeoutMs (${options.timeoutMs})`);
  }
  for (const cap of ['maxStdoutBytes', 'maxStderrBytes'] as const) {
    // The result is a string, and the engine has none longer than this.
    if (!options.keepOutput || options[cap] <= bufferLimits.MAX_STRING_LENGTH) continue;
    throw new RangeError(`${cap} must be at most ${bufferLimits.MAX_STRING_LENGTH} unless keepOutput is false, got ${options[cap]}`);
  }
  // The default must not make a valid timeout invalid.
  return { ...options, gracePeriodMs: gracePeriodMs ?? Math.min(2000, options.timeoutMs - 1) };
}
