import { expect, it } from 'vitest';

import { endCauses } from '../../src/launcher/records.js';
import type { EndCause, EndedRecord, KernelUsage } from '../../src/launcher/records.js';
import { exitOf, outcomeOf } from '../../src/run/outcome.js';

const unlimited = { limits: { memoryMb: 512, pids: 128, cpus: null, cpuTimeMs: null, openFiles: 1024, fileSizeMb: null } };

function ended(cause: EndCause, waitStatus: number | null, usage: Partial<KernelUsage> = {}): EndedRecord {
  const unknown = { cpuUserUs: null, cpuSystemUs: null, peakMemoryBytes: null, peakPids: null, oomKills: null, pidsRefused: null };
  return { kind: 'ended', removalErrno: 0, cause, waitStatus, usage: { ...unknown, ...usage } };
}

it('gives each cause one outcome', () => {
  const outcomes = endCauses.map((cause) => outcomeOf(ended(cause, null), unlimited, true));
  expect(Object.fromEntries(endCauses.map((cause, index) => [cause, outcomes[index]]))).toEqual({
    'guest-ended': 'exit',
    killed: 'spawn-error',
    deadline: 'timeout',
    'out-of-memory': 'out-of-memory',
    'cpu-limit': 'cpu-limit',
    'host-gone': 'spawn-error',
    'init-died': 'spawn-error',
  });
});

it('takes the death of process 1 for that of the guest, if there was one', () => {
  expect(outcomeOf(ended('init-died', 9), unlimited, true)).toBe('exit');
  expect(outcomeOf(ended('init-died', 9), unlimited, false)).toBe('spawn-error');
});

it('takes a SIGKILL for out of memory only when the kernel has counted one', () => {
  expect(outcomeOf(ended('guest-ended', 9), unlimited, true)).toBe('exit');
  expect(outcomeOf(ended('guest-ended', 9, { oomKills: 0 }), unlimited, true)).toBe('exit');
  expect(outcomeOf(ended('guest-ended', 9, { oomKills: 1 }), unlimited, true)).toBe('out-of-memory');
});

it('takes SIGXCPU for the cpu limit only when there is one and it was used up', () => {
  const limited = { limits: { ...unlimited.limits, cpuTimeMs: 1000 } };
  const used = { cpuUserUs: 900_000, cpuSystemUs: 200_000 };
  expect(outcomeOf(ended('guest-ended', 24, used), limited, true)).toBe('cpu-limit');
  expect(outcomeOf(ended('guest-ended', 24, used), unlimited, true)).toBe('exit');
  expect(outcomeOf(ended('guest-ended', 24, { cpuUserUs: 1000, cpuSystemUs: 0 }), limited, true)).toBe('exit');
  expect(outcomeOf(ended('guest-ended', 3 << 8, used), limited, true)).toBe('exit');
});

it('reads a wait status', () => {
  expect(exitOf(0)).toEqual({ exitCode: 0, signal: null });
  expect(exitOf(42 << 8)).toEqual({ exitCode: 42, signal: null });
  expect(exitOf(11 | 0x80)).toEqual({ exitCode: null, signal: 'SIGSEGV' });
  expect(exitOf(40)).toEqual({ exitCode: null, signal: 'SIG40' });
  expect(exitOf(null)).toEqual({ exitCode: null, signal: null });
});
