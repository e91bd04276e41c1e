import type { Fence, SandboxResult } from '../index.js';
import { exitCodeByError } from '../errors.js';
import { inFlags } from './flag-names.js';
import type { RunFlags } from './run-flags.js';
import { durationText, sizeText } from './values.js';

const MIB = 1024 * 1024;

/** What to say on standard error about how a run ended, one sentence a line; empty where the guest's own exit says it all. */
export function verdict(result: SandboxResult, flags: RunFlags, canceledBy: NodeJS.Signals | null): string[] {
  return [...gaps(result, flags), ...ending(result, flags, canceledBy)];
}

function ending(result: SandboxResult, flags: RunFlags, canceledBy: NodeJS.Signals | null): string[] {
  const { usage } = result;
  switch (result.outcome) {
    case 'exit':
      return ownEnd(result, flags);
    case 'timeout':
      return [
        `timeout: still running after --timeout ${durationText(flags.timeout)}; allow more with --timeout ${durationText(2 * flags.timeout)}`,
        ...processLimit(result, flags),
      ];
    case 'out-of-memory': {
      const used = usage.peakMemoryBytes === null ? 'it needed more than' : `used ${mebibytesText(usage.peakMemoryBytes)} of`;
      return [`out of memory: ${used} --memory ${limitText(flags.memory)}; raise it with --memory ${limitText(2 * flags.memory)}`];
    }
    case 'cpu-limit': {
      const limit = flags.cpuTime ?? 0;
      return [`cpu limit: used all of --cpu-time ${durationText(limit)}; allow more with --cpu-time ${durationText(2 * limit)}`];
    }
    case 'overflow-stdout':
      return [overflow('standard output', '--max-stdout', flags.maxStdout)];
    case 'overflow-stderr':
      return [overflow('standard error', '--max-stderr', flags.maxStderr)];
    case 'canceled':
      return [canceledBy === null ? 'canceled' : `canceled by ${canceledBy}; nothing of it is left`];
    case 'spawn-error':
      return [refusal(result)];
  }
}

function ownEnd(result: SandboxResult, flags: RunFlags): string[] {
  const { exitCode, signal } = result;
  const lines = exitCode === 0 ? [] : processLimit(result, flags);
  if (exitCode === 127) lines.push('exit 127, the command\'s own: a program that it starts is not in the sandbox; show its directory with --read, or run the program itself instead of a version manager\'s shim for it');
  if (signal !== null) lines.push(`the command died of ${signal}${SIGNAL_MEANING[signal] ?? ''}`);
  return lines;
}

/** A guest that fails at this limit seldom says so itself: Node aborts when it cannot start a thread, a shell waits for ever. */
function processLimit({ usage }: SandboxResult, { pids }: RunFlags): string[] {
  const refused = usage.pidsRefused ?? 0;
  if (refused === 0) return [];
  const times = refused === 1 ? 'once' : `${refused} times`;
  return [`process limit: a new process or thread was refused ${times} at --pids ${pids}; raise it with --pids ${2 * pids}`];
}

const SIGNAL_MEANING: Readonly<Partial<Record<NodeJS.Signals, string>>> = {
  SIGXFSZ: ': a file grew beyond --file-size',
  SIGKILL: ': killed from inside the sandbox, or by the administrator of this machine',
};

function refusal({ error, errorMessage }: SandboxResult): string {
  const message = inFlags(errorMessage);
  if (error === null || Object.hasOwn(exitCodeByError, error.code)) return message;
  return `${message}${/[.!?]$/.test(message) ? '' : '.'} To see what this machine can do, run "ringfence doctor"`;
}

function overflow(stream: string, flag: string, limit: number | undefined): string {
  if (limit === undefined) return `output limit: too much ${stream}; set ${flag}`;
  return `output limit: more than ${flag} ${sizeText(limit)} of ${stream}; allow more with ${flag} ${sizeText(2 * limit)}`;
}

/**
 * Fences that were asked for and are not there: only best-effort runs come so far, and those under the toggle. Landlock is
 * the second wall of strict runs too, and kernels without it are common: the result and doctor tell of it.
 */
function gaps({ outcome, enforcement }: SandboxResult, { allow }: RunFlags): string[] {
  if (outcome === 'spawn-error') return [];
  const lines: string[] = [];
  // Not asked for here, and the variable may come from far away.
  if (enforcement.network.by === NETWORK_TOGGLE) lines.push(`no network fence${allow === undefined ? '' : ', so --allow keeps nothing out'}: ${NETWORK_TOGGLE} is set`);
  return [...lines, ...missingFences(enforcement)];
}

/** What a best-effort run had to do without. */
export function missingFences(enforcement: SandboxResult['enforcement']): string[] {
  const missing = (Object.keys(enforcement) as Fence[]).filter((fence) => fence !== 'landlock' && enforcement[fence].status === 'unavailable');
  if (missing.length === 0) return [];
  const list = missing.map((fence) => `${fence} (${enforcement[fence].by})`).join(', ');
  return [`best effort: ran WITHOUT ${list}; "ringfence doctor" says how to have it all`];
}

const NETWORK_TOGGLE = 'SANDBOX_DISABLE_NETNS_FIREWALL=1';

function limitText(mebibytes: number): string {
  return sizeText(mebibytes * MIB);
}

function mebibytesText(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`;
}
