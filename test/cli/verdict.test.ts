import { describe, expect, it } from 'vitest';

import type { RunFlags } from '../../src/cli/run-flags.js';
import { verdict } from '../../src/cli/verdict.js';
import { describeFailure } from '../../src/errors.js';
import type { Enforcement, SandboxResult } from '../../src/index.js';

const flags: RunFlags = { timeout: 5000, memory: 128, pids: 64, openFiles: 1024, tmp: 256, network: 'none', stdin: true };
const enforced = { status: 'enforced', by: 'x' } as const;
const enforcement: Enforcement = {
  privileges: enforced,
  identity: enforced,
  filesystem: enforced,
  network: enforced,
  pids: enforced,
  memory: enforced,
  cpu: { status: 'disabled', by: 'no limit asked for' },
  syscalls: enforced,
  landlock: enforced,
};
const clean: SandboxResult = {
  outcome: 'exit',
  exitCode: 0,
  signal: null,
  stdout: '',
  stderr: '',
  stdoutTruncated: false,
  stderrTruncated: false,
  durationMs: 1,
  cwd: '/',
  cwdOwnedBySandbox: true,
  nodeHeapMbApplied: null,
  errorMessage: '',
  error: null,
  usage: { wallMs: 1, cpuUserMs: 1, cpuSystemMs: 1, peakMemoryBytes: 128 * 2 ** 20, peakPids: 2, oomKills: 0, pidsRefused: 0 },
  enforcement,
  connections: [],
  connectionsOmitted: 0,
};
const said = (result: Partial<SandboxResult>, by: NodeJS.Signals | null = null, more: Partial<RunFlags> = {}) =>
  verdict({ ...clean, exitCode: null, ...result }, { ...flags, ...more }, by);

it('an exit of the guest\'s own says nothing, whatever the code', () => {
  expect(said({ exitCode: 0 })).toEqual([]);
  expect(said({ exitCode: 3 })).toEqual([]);
});

describe('one line says what happened, by what limit, and what to type', () => {
  it.each<[string, Partial<SandboxResult>, Partial<RunFlags>, string]>([
    ['timeout', { outcome: 'timeout' }, {}, 'timeout: still running after --timeout 5s; allow more with --timeout 10s'],
    ['memory', { outcome: 'out-of-memory' }, {}, 'out of memory: used 128 MiB of --memory 128M; raise it with --memory 256M'],
    ['cpu time', { outcome: 'cpu-limit' }, { cpuTime: 10_000 }, 'cpu limit: used all of --cpu-time 10s; allow more with --cpu-time 20s'],
    [
      'output',
      { outcome: 'overflow-stdout' },
      { maxStdout: 100 },
      'output limit: more than --max-stdout 100B of standard output; allow more with --max-stdout 200B',
    ],
    ['errors', { outcome: 'overflow-stderr' }, { maxStderr: 1024 }, 'output limit: more than --max-stderr 1K of standard error; allow more with --max-stderr 2K'],
    ['signal', { signal: 'SIGSEGV' }, {}, 'the command died of SIGSEGV'],
  ])('%s', (_, result, more, line) => {
    expect(said(result, null, more)).toEqual([line]);
  });

  it('unknown figures are left out', () => {
    const usage = { ...clean.usage, peakMemoryBytes: null };
    expect(said({ outcome: 'out-of-memory', usage })).toEqual(['out of memory: it needed more than --memory 128M; raise it with --memory 256M']);
  });

  it('a cancel names the signal', () => {
    expect(said({ outcome: 'canceled' }, 'SIGINT')[0]).toContain('canceled by SIGINT');
  });
});

it('an exit code of 127 is explained: a shell or a shim did not find what it starts', () => {
  expect(said({ exitCode: 127 })[0]).toContain('is not in the sandbox');
  expect(said({ exitCode: 126 })).toEqual([]);
});

describe('refused forks', () => {
  const usage = { ...clean.usage, pidsRefused: 7 };
  it('are named when the guest failed', () => {
    expect(said({ exitCode: 134, usage })).toEqual([
      'process limit: a new process or thread was refused 7 times at --pids 64; raise it with --pids 128',
    ]);
    expect(said({ signal: 'SIGABRT', usage })[0]).toContain('process limit');
  });
  it('are named when it was still running at the deadline', () => {
    expect(said({ outcome: 'timeout', usage })[1]).toContain('process limit');
    expect(said({ outcome: 'timeout' })).toHaveLength(1);
  });
  it('are not worth a word when it did not', () => {
    expect(said({ exitCode: 0, usage })).toEqual([]);
  });
});

describe('a run that could not start', () => {
  const refused = (code: string, hint?: string) => {
    const { message, error } = describeFailure(code, 'it was tried', hint === undefined ? {} : { hint });
    return said({ outcome: 'spawn-error', errorMessage: message, error }).join('\n');
  };
  it('gives the hint in flags, and where to look', () => {
    const text = refused('limits-too-small');
    expect(text).toContain('aise --pids or --memory');
    expect(text).toContain('run "ringfence doctor"');
  });
  it('does not send a reader to the doctor for a typing error', () => {
    expect(refused('command-not-found')).not.toContain('doctor');
    expect(refused('command-not-executable')).not.toContain('doctor');
  });
});

it('a kernel without the second wall is no gap', () => {
  const gap = { ...enforcement, landlock: { status: 'unavailable', by: 'landlock-missing' } as const };
  expect(said({ exitCode: 0, enforcement: gap })).toEqual([]);
});

it('fences that are missing are named, with the reason', () => {
  const gap = { ...enforcement, memory: { status: 'unavailable', by: 'CGROUP_READ_ONLY' } as const };
  expect(said({ exitCode: 0, enforcement: gap })).toEqual([
    'best effort: ran WITHOUT memory (CGROUP_READ_ONLY); "ringfence doctor" says how to have it all',
  ]);
});
