import { realpathSync } from 'node:fs';
import { isAbsolute, sep } from 'node:path';

import type { SandboxOptions } from '../index.js';
import { pathFrom } from './current-directory.js';
import type { CurrentDirectory } from './current-directory.js';
import type { RunFlags } from './run-flags.js';
import { UsageError } from './usage-error.js';

/** The options of the library that the flags stand for; streams and signals are added by the caller. */
export function optionsOf(flags: RunFlags, command: string, args: readonly string[], here: CurrentDirectory): SandboxOptions {
  const write = (flags.write ?? []).map((path) => pathFrom(here, path));
  const cwd = flags.cwd === false ? undefined : pathFrom(here, flags.cwd ?? '.');
  return {
    command: commandPath(command, here),
    args,
    cwd,
    cwdReadOnly: cwd !== undefined && !write.some((granted) => isInside(cwd, granted)),
    env: flags.env,
    timeoutMs: flags.timeout,
    gracePeriodMs: flags.grace,
    shutdownSignal: flags.shutdownSignal,
    maxStdoutBytes: flags.maxStdout,
    maxStderrBytes: flags.maxStderr,
    nodeHeapMb: flags.nodeHeap,
    network: networkOf(flags),
    filesystem: { read: (flags.read ?? []).map((path) => pathFrom(here, path)), write, tmpMb: flags.tmp },
    limits: {
      memoryMb: flags.memory,
      pids: flags.pids,
      cpus: flags.cpus,
      cpuTimeMs: flags.cpuTime,
      openFiles: flags.openFiles,
      fileSizeMb: flags.fileSize,
    },
    isolation: flags.bestEffort === true ? 'best-effort' : 'strict',
  };
}

function networkOf({ network, allow, allowPrivate, host }: RunFlags): SandboxOptions['network'] {
  const allowlist = { allow, allowPrivate, hosts: host };
  if (allow === undefined) {
    const alone = allowPrivate !== undefined ? '--allow-private' : host !== undefined ? '--host' : null;
    if (alone !== null) throw new UsageError(`${alone} needs a host to be about: add --allow HOST`);
    return network;
  }
  if (network !== undefined) throw new UsageError(`--allow and --network ${network} contradict each other: leave one out`);
  return { ...allowlist, allow };
}

/** As a shell does it: a name without a slash is looked up in PATH, anything else is a path from the current directory. */
function commandPath(command: string, here: CurrentDirectory): string {
  return command.includes('/') && !isAbsolute(command) ? pathFrom(here, command) : command;
}

function isInside(path: string, directory: string): boolean {
  const [inner, outer] = [real(path), real(directory)];
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep);
}

/** A path that is not there is the library's to complain about. */
function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
