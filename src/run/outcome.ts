import { constants } from 'node:os';

import type { EndedRecord } from '../launcher/records.js';
import type { RunOptions } from './options.js';
import type { Outcome } from './result.js';

/** What the launcher's account of the end means to the caller. */
export function outcomeOf({ cause, usage, waitStatus }: EndedRecord, options: Pick<RunOptions, 'limits'>, guestRan: boolean): Outcome {
  switch (cause) {
    case 'guest-ended': {
      // The kernel killed some process of the run for memory, and the guest ended of that before the launcher saw it.
      if ((usage.oomKills ?? 0) > 0) return 'out-of-memory';
      // RLIMIT_CPU stands behind the launcher's own count, and may be faster.
      const usedMs = ((usage.cpuUserUs ?? 0) + (usage.cpuSystemUs ?? 0)) / 1000;
      const { cpuTimeMs } = options.limits;
      const bySignal = waitStatus !== null && (waitStatus & 0x7f) !== 0;
      return cpuTimeMs !== null && bySignal && usedMs >= cpuTimeMs ? 'cpu-limit' : 'exit';
    }
    case 'deadline':
      return 'timeout';
    case 'out-of-memory':
    case 'cpu-limit':
      return cause;
    case 'init-died':
      // Killed: by an operator, or by a limit that a guest of the same uid took from it. The guest died of that signal too.
      return guestRan && waitStatus !== null ? 'exit' : 'spawn-error';
    case 'killed':
    case 'host-gone':
      return 'spawn-error';
  }
}

/** A wait status (waitpid(2)) in the words of Node. */
export function exitOf(waitStatus: number | null): { exitCode: number | null; signal: NodeJS.Signals | null } {
  if (waitStatus === null) return { exitCode: null, signal: null };
  const signal = waitStatus & 0x7f;
  return signal === 0 ? { exitCode: (waitStatus >> 8) & 0xff, signal: null } : { exitCode: null, signal: signalName(signal) };
}

/** The name of a signal; a real-time signal, which Node has no name for, is `SIG` and its number. */
export function signalName(signal: number): NodeJS.Signals {
  const known = Object.entries(constants.signals).find(([, value]) => value === signal);
  return (known?.[0] ?? `SIG${signal}`) as NodeJS.Signals;
}
