import { constants } from 'node:os';

import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';

import { bytes, count, cpus, duration, mebibytes, ValueProblem } from './values.js';

/** The flags of `ringfence run`, parsed. Those with a default are always there. */
export interface RunFlags {
  timeout: number;
  grace?: number;
  shutdownSignal?: NodeJS.Signals;
  memory: number;
  pids: number;
  cpus?: number;
  cpuTime?: number;
  openFiles: number;
  fileSize?: number;
  tmp: number;
  read?: string[];
  write?: string[];
  /** False: `--no-cwd`. Absent: the current directory. */
  cwd?: string | false;
  env?: Record<string, string>;
  network?: 'none' | 'host';
  allow?: string[];
  allowPrivate?: string[];
  host?: Record<string, string>;
  bestEffort?: boolean;
  stdin: boolean;
  maxStdout?: number;
  maxStderr?: number;
  nodeHeap?: number;
  json?: boolean;
}

/** Adds the flags, one a line, in the order of the help text. */
export function defineRunFlags(command: Command, callerEnv: Readonly<Record<string, string | undefined>>): Command {
  const { limits, view, streams } = HEADINGS;
  return command
    .addOption(flag('--timeout <time>', 'wall-clock time: 500ms, 5s, 2m, 1h', duration, 60_000, '60s').helpGroup(limits))
    .addOption(flag('--grace <time>', 'from the soft signal to SIGKILL (default: 2s, or less with a shorter timeout)', duration).helpGroup(limits))
    .addOption(flag('--shutdown-signal <name>', 'the soft signal (default: SIGTERM)', signalName).helpGroup(limits))
    .addOption(flag('--memory <size>', 'memory of all its processes together: 256M, 1G', mebibytes, 512, '512M').helpGroup(limits))
    .addOption(flag('--pids <number>', 'processes and threads at one time', count, 128).helpGroup(limits))
    .addOption(flag('--cpus <number>', 'share of the processors: 0.5, 2 (default: no limit)', cpus).helpGroup(limits))
    .addOption(flag('--cpu-time <time>', 'cpu time of all its processes together (default: no limit)', duration).helpGroup(limits))
    .addOption(flag('--tmp <size>', 'room for /tmp, HOME and all else that is its own', mebibytes, 256, '256M').helpGroup(limits))
    .addOption(flag('--file-size <size>', 'what a single file can grow to (default: no limit)', mebibytes).helpGroup(limits))
    .addOption(flag('--open-files <number>', 'open files of each process', count, 1024).helpGroup(limits))
    .addOption(flag('--node-heap <size>', 'heap of a command that is node (default: its own choice)', mebibytes).helpGroup(limits))
    .addOption(repeatable('--read <path>', 'show it this file or directory, read-only; repeatable').helpGroup(view))
    .addOption(repeatable('--write <path>', 'let it write to this file or directory; repeatable').helpGroup(view))
    .addOption(flag('--cwd <path>', 'start here, read-only unless inside a --write (default: the current directory)', path).helpGroup(view))
    .addOption(new Option('--no-cwd', 'start in an empty directory of its own; the current one is not shown to it').helpGroup(view))
    .addOption(environment(callerEnv).helpGroup(view))
    .addOption(repeatable('--allow <host[:port]>', 'let it reach this host (443 and 80, or the port); also *.host; repeatable', hostText).helpGroup(view))
    .addOption(repeatable('--allow-private <range>', 'where allowed hosts may be besides the Internet: 10.20.0.0/16; repeatable', hostText).helpGroup(view))
    .addOption(pin().helpGroup(view))
    .addOption(new Option('--network <mode>', 'none, or host: the network of this machine (default: none, or the allowed hosts)').choices(['none', 'host']).helpGroup(view))
    .addOption(new Option('--best-effort', 'where a fence cannot be had, run without it and say so').helpGroup(view))
    .addOption(new Option('--no-stdin', 'give it no standard input').helpGroup(streams))
    .addOption(flag('--max-stdout <size>', 'end it at this much standard output (default: no limit; 8M with --json)', bytes).helpGroup(streams))
    .addOption(flag('--max-stderr <size>', 'the same for standard error (default: no limit; 1M with --json)', bytes).helpGroup(streams))
    .addOption(new Option('--json', 'print the result as one JSON document instead of passing the output through').helpGroup(streams));
}

const HEADINGS = { limits: 'What it may use:', view: 'What it may see and reach:', streams: 'Input and output:' } as const;

export function flag<T>(flags: string, description: string, parse: (text: string) => T, preset?: T, shown?: string): Option {
  const option = new Option(flags, description).argParser((text: string) => checked(text, parse));
  return preset === undefined ? option : option.default(preset, shown);
}

export function repeatable(flags: string, description: string, parse: (text: string) => string = path): Option {
  return new Option(flags, description)
    .argParser((text: string, before: string[] = []) => [...before, checked(text, parse)]);
}

function pin(): Option {
  return new Option('--host <name=address>', 'an allowed host has this address, whatever DNS says; repeatable')
    .argParser((text: string, before: Record<string, string> = {}) => {
      const [name, address] = checked(text, pinned);
      return Object.fromEntries([...Object.entries(before), [name, address]]);
    });
}

function environment(callerEnv: Readonly<Record<string, string | undefined>>): Option {
  return assignments('--env <name[=value]>', 'set a variable, or pass the one of this shell, beside PATH, HOME and TMPDIR; repeatable', callerEnv);
}

export function assignments(flags: string, description: string, callerEnv: Readonly<Record<string, string | undefined>>): Option {
  return new Option(flags, description)
    .argParser((text: string, before: Record<string, string> = {}) => {
      const [name, value] = checked(text, (each) => assignment(each, flags.split(' ')[0] ?? flags, callerEnv));
      // Not by plain assignment: a variable may be called __proto__.
      return Object.fromEntries([...Object.entries(before), [name, value]]);
    });
}

function checked<T>(text: string, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof ValueProblem)) throw error;
    throw new InvalidArgumentError(error.message);
  }
}

function path(text: string): string {
  if (text === '') throw new ValueProblem('must not be empty');
  if (text.startsWith('-')) throw new ValueProblem(`looks like a flag: type a path, or ./${text} for a file of that name`);
  return text;
}

export function hostText(text: string): string {
  if (text === '' || text.startsWith('-')) throw new ValueProblem('must not be empty or look like a flag');
  return text;
}

function pinned(text: string): [string, string] {
  const [name = '', address = '', ...rest] = text.split('=');
  if (name === '' || address === '' || rest.length > 0 || name.startsWith('-')) throw new ValueProblem('must be NAME=ADDRESS, for example api.test=10.20.0.5');
  return [name, address];
}

function assignment(text: string, flagName: string, callerEnv: Readonly<Record<string, string | undefined>>): [string, string] {
  const at = text.indexOf('=');
  const name = at < 0 ? text : text.slice(0, at);
  if (name === '' || name.startsWith('-')) throw new ValueProblem('must be NAME or NAME=VALUE');
  if (at >= 0) return [name, text.slice(at + 1)];
  const value = callerEnv[name];
  if (value === undefined) throw new ValueProblem(`is not set in this shell: type ${flagName} ${name}=VALUE`);
  return [name, value];
}

function signalName(text: string): NodeJS.Signals {
  const name = text.toUpperCase().replace(/^(?!SIG)/, 'SIG');
  if (!Object.hasOwn(constants.signals, name)) throw new ValueProblem('must be a signal such as SIGTERM or SIGINT');
  return name as NodeJS.Signals;
}
