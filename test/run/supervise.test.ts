import { readlinkSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { compilePolicy } from '../../src/egress/policy.js';
import { native } from '../../src/launcher/addon.js';
import type { FenceBit } from '../../src/launcher/records.js';
import { AbortFan } from '../../src/run/abort.js';
import { describeEnding } from '../../src/run/collect.js';
import { validateOptions } from '../../src/run/options.js';
import type { SandboxOptions } from '../../src/run/options.js';
import { supervise } from '../../src/run/supervise.js';
import type { Ending } from '../../src/run/ending.js';
import { compileFixture } from '../support/compile.js';
import { leftovers, newLeftovers } from '../support/leftovers.js';
import type { Leftovers } from '../support/leftovers.js';
import { readProcesses } from '../support/processes.js';

const launcher = compileFixture('faulty-launcher.cc', { flags: ['-std=c++17'] });

interface Extra {
  options?: Partial<SandboxOptions>;
  required?: FenceBit[];
  hasAllowlist?: boolean;
  patienceMs?: number;
}

/** Supervises a launcher that does these lines. */
function play(script: string[], { options = {}, required = [], hasAllowlist = false, patienceMs = 5000 }: Extra = {}): Promise<Ending> {
  const network = !hasAllowlist ? 'none' : compilePolicy({ allow: ['a.test:443', '[2606:4700::1]:443'] });
  return supervise({
    native: native(),
    launcher,
    plan: Buffer.from(`${script.join('\n')}\n`),
    options: { ...validateOptions({ command: '/guest', args: [], timeoutMs: 20_000, ...options }), network },
    hasAllowlist,
    aborts: new AbortFan(),
    patienceMs,
    missing: (verified) => required.filter((bit) => !verified.has(bit)),
  });
}

function processesOf(program: string): number[] {
  return readProcesses()
    .map(({ pid }) => pid)
    .filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/exe`) === program;
      } catch {
        return false; // it has ended, or is another account's
      }
    });
}

function codeOf(ending: Ending): string {
  return describeEnding({ command: '/guest' }, ending).error.code;
}

it('takes a launcher that ends without a word for one that was killed', async () => {
  const ending = await play(['ready 0', 'print before', 'raise 9']);
  expect(ending.outcome).toBe('spawn-error');
  expect(codeOf(ending)).toBe('launcher-died');
  expect(describeEnding({ command: '/guest' }, ending).message).toContain('killed from outside by SIGKILL');
  expect(ending.stdout.text()).toBe('before');
});

it('takes the end of file alone for no result', async () => {
  const ending = await play(['exit 0']);
  expect(ending.outcome).toBe('spawn-error');
  expect(codeOf(ending)).toBe('launcher-died');
});

it('tells a failed stage with its errno', async () => {
  const ending = await play(['failure 3', 'ended 0x100']);
  expect(ending.outcome).toBe('spawn-error');
  expect(describeEnding({ command: '/guest' }, ending).error).toMatchObject({ stage: 'sources', syscall: 'openat2', errno: 'EACCES' });
});

it('hangs up on a launcher that sends what is no record', async () => {
  const ending = await play(['nonsense', 'command', 'exit 0']);
  expect(ending.outcome).toBe('spawn-error');
  expect(codeOf(ending)).toBe('launcher-protocol');
  expect(ending.stdout.text()).toBe('hung up\n');
});

it('kills a sandbox that is without a required fence', async () => {
  const ending = await play(['ready 0x8', 'command', 'exit 0'], { required: ['network', 'memory'] });
  expect(ending.outcome).toBe('spawn-error');
  expect(ending.missing).toEqual(['memory']);
  expect(codeOf(ending)).toBe('fence-not-verified');
  expect(ending.stdout.text()).toBe('kill\n');
});

it('kills without a soft signal what is not ready yet', async () => {
  const ending = await play(['command', 'exit 0'], { options: { timeoutMs: 300, gracePeriodMs: 200 } });
  expect(ending.outcome).toBe('timeout');
  expect(ending.stdout.text()).toBe('kill\n');
});

it('hangs up on a launcher that does not do as it is told, and kills it in the end', async () => {
  const ending = await play(['ready 0', 'command', 'command', 'command', 'sleep 60000'], {
    options: { timeoutMs: 300, gracePeriodMs: 100 },
    patienceMs: 300,
  });
  expect(ending.outcome).toBe('timeout');
  expect(ending.stdout.text()).toBe('signal\nkill\nhung up\n');
  expect(ending.exit).toEqual({ exitCode: null, signal: 9 });
  expect(ending.wallMs).toBeLessThan(10_000);
});

it('kills a launcher that has told the end and does not exit', async () => {
  const ending = await play(['ready 0', 'ended 0x300', 'sleep 60000'], { patienceMs: 200 });
  expect(ending.outcome).toBe('exit');
  expect(ending.ended?.waitStatus).toBe(0x300);
  expect(ending.exit.signal).toBe(9);
});

it.each([
  ['keeps it open in silence', 'hold-output 0', 250],
  ['writes into it for ever', 'hold-output 5', 2000],
])('does not wait for a holder of the output that %s', async (_, hold, least) => {
  const startedAt = performance.now();
  const ending = await play([hold, 'ready 0', 'print mine', 'ended 0', 'exit 0']);
  expect(ending.outcome).toBe('exit');
  expect(ending.stdout.text()).toContain('mine');
  const waited = performance.now() - startedAt;
  expect(waited).toBeGreaterThan(least - 50);
  expect(waited).toBeLessThan(least + 8000);
  // It is nobody's child any more: `leftovers` does not see it.
  await expect.poll(() => processesOf(launcher), { timeout: 10_000 }).toEqual([]);
});

it('lets the first cause win over what comes of it', async () => {
  const controller = new AbortController();
  const ending = await play(['ready 0', 'print x', 'command', 'ended 0x300', 'exit 0'], {
    options: { signal: controller.signal, onStdout: () => controller.abort() },
  });
  expect(ending.outcome).toBe('canceled');
});

it('does not let an abort after the end change the outcome', async () => {
  const controller = new AbortController();
  const running = play(['ready 0', 'ended 0', 'sleep 300', 'exit 0'], { options: { signal: controller.signal } });
  setTimeout(() => controller.abort(), 150);
  expect((await running).outcome).toBe('exit');
});

describe('the sockets of an allowlist', () => {
  // Closing is left to a thread.
  const nothingNew = (before: Leftovers) => expect.poll(() => newLeftovers(before, leftovers())).toEqual({});
  const hasAllowlist = true;

  it('are served until the launcher has gone, and leave nothing', async () => {
    await play(['sockets 6', 'ready 0', 'ended 0', 'exit 0'], { hasAllowlist });
    const before = leftovers();
    const ending = await play(['sockets 6', 'ready 0', 'ended 0', 'exit 0'], { hasAllowlist });
    expect(ending).toMatchObject({ outcome: 'exit', unserved: null, egress: { connections: [], omitted: 0 } });
    await nothingNew(before);
  });

  it.each([
    ['that are none', 'pipes 6', 'allowlist-unavailable'],
    ['of which some did not come through', 'sockets 5', 'host-out-of-descriptors'],
    ['of which too many came', 'sockets 7', 'host-out-of-descriptors'],
  ])('%s end the run, and are closed', async (_, sockets, code) => {
    const script = [sockets, 'command', 'ready 0', 'ended 0x100', 'exit 0'];
    await play(script, { hasAllowlist });
    const before = leftovers();
    const ending = await play(script, { hasAllowlist });
    expect(ending.outcome).toBe('spawn-error');
    expect(ending.stdout.text()).toBe('kill\n');
    expect(codeOf(ending)).toBe(code);
    await nothingNew(before);
  });

  it('that come twice are served once', async () => {
    const before = leftovers();
    const ending = await play(['sockets 6', 'sockets 6', 'ready 0', 'ended 0', 'exit 0'], { hasAllowlist });
    expect(ending.outcome).toBe('exit');
    await nothingNew(before);
  });

  it('that nobody asked for, or that do not come, are no protocol', async () => {
    const before = leftovers();
    for (const ending of [await play(['sockets 6', 'command', 'exit 0']), await play(['ready 0', 'command', 'exit 0'], { hasAllowlist })]) {
      expect(ending.outcome).toBe('spawn-error');
      expect(codeOf(ending)).toBe('launcher-protocol');
      expect(ending.stdout.text()).toBe('hung up\n');
    }
    await nothingNew(before);
  });

  it('are closed when the launcher fails after them', async () => {
    const before = leftovers();
    expect((await play(['sockets 6', 'failure 3', 'exit 1'], { hasAllowlist })).outcome).toBe('spawn-error');
    expect((await play(['sockets 6', 'raise 9'], { hasAllowlist })).outcome).toBe('spawn-error');
    await nothingNew(before);
  });
});

it('leaves nothing open after any of this', async () => {
  await play(['exit 0']);
  const before = leftovers();
  await Promise.all([
    play(['nonsense', 'exit 0'], { options: { stdin: 'x' } }),
    play(['raise 9'], { options: { stdin: 'x' } }),
    play(['failure 2', 'exit 1']),
    play(['ready 0', 'ended 0', 'exit 0'], { options: { stdin: new Uint8Array(1 << 20) } }),
  ]);
  await expect(play([], { options: {} }).then(() => newLeftovers(before, leftovers()))).resolves.toEqual({});
});

it('rejects, with nothing left, when there is no launcher', async () => {
  const before = leftovers();
  const options = { ...validateOptions({ command: '/guest', args: [], timeoutMs: 1000 }), network: 'none' as const };
  const missing = () => [];
  await expect(
    supervise({ native: native(), launcher: '/no/such/launcher', plan: Buffer.alloc(0), options, aborts: new AbortFan(), missing }),
  ).rejects.toThrow(expect.objectContaining({ code: 'ENOENT' }));
  expect(newLeftovers(before, leftovers())).toEqual({});
});
