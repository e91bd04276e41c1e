import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterEach, describe, expect, it } from 'vitest';

import { Host } from '../../src/run/host.js';
import { runnerOf } from '../../src/run/run.js';
import type { SandboxResult } from '../../src/run/result.js';
import { leftovers, newLeftovers } from '../support/leftovers.js';
import { readProcesses } from '../support/processes.js';

const sh = (script: string) => ({ command: '/bin/sh', args: ['-c', script], timeoutMs: 20_000 });

function launchers(): number[] {
  return readProcesses().filter(({ parent, name }) => parent === process.pid && name.startsWith('ringfence')).map(({ pid }) => pid);
}

describe('a launcher that is killed from outside', () => {
  it.each([0, 1, 2, 4, 8, 16, 300])('%i ms after its start leaves nothing, and is no exit of the guest', async (delay) => {
    const run = runnerOf(new Host());
    await run(sh('exit 0'));
    const before = leftovers();
    const running = run(sh('setsid sleep 61 & sleep 61'));
    while (launchers().length === 0) await sleep(1);
    await sleep(delay);
    for (const pid of launchers()) process.kill(pid, 'SIGKILL');
    const result = await running;
    expect(result).toMatchObject({ outcome: 'spawn-error', exitCode: null, signal: null, error: { code: 'launcher-died' } });
    const { processes, cgroups, mounts, temporary } = newLeftovers(before, leftovers());
    expect({ processes, cgroups, mounts, temporary }).toEqual({});
  });
});

describe('a host without a place for cgroups', () => {
  const given = process.env['RINGFENCE_CGROUP'];
  const restore = () => {
    if (given === undefined) delete process.env['RINGFENCE_CGROUP'];
    else process.env['RINGFENCE_CGROUP'] = given;
  };
  afterEach(restore);

  it('refuses in strict, runs and says so in best-effort, and tries again the next time', async () => {
    const run = runnerOf(new Host());
    process.env['RINGFENCE_CGROUP'] = '/no/such/cgroup';
    const strict = await run(sh('exit 0'));
    expect(strict).toMatchObject({ outcome: 'spawn-error', error: { code: 'CGROUP_OVERRIDE_INVALID', stage: null } });
    expect(strict.errorMessage).toContain('/no/such/cgroup');
    expect(strict.enforcement.memory.status).toBe('unavailable');

    const lax = await run({ ...sh('exit 3'), isolation: 'best-effort', limits: { cpuTimeMs: 10_000 } });
    expect(lax).toMatchObject({ outcome: 'exit', exitCode: 3 });
    expect(lax.enforcement).toMatchObject({
      memory: { status: 'unavailable', by: 'CGROUP_OVERRIDE_INVALID' },
      pids: { status: 'unavailable', by: 'CGROUP_OVERRIDE_INVALID; only process-tree' },
      cpu: { status: 'unavailable', by: 'CGROUP_OVERRIDE_INVALID' },
      filesystem: { status: 'enforced' },
      network: { status: 'enforced' },
    });
    expect(lax.usage).toMatchObject({ peakMemoryBytes: null, pidsRefused: null });

    restore();
    const later = await run({ ...sh('exit 0'), isolation: 'best-effort' });
    expect(later.enforcement.memory).toMatchObject({ status: 'enforced' });
  });

  it('looks for the place again when the one it knew is gone', async () => {
    const host = new Host();
    const { cgroup } = await host.facts();
    if (cgroup.kind !== 'ready') throw new Error('this test needs a place for cgroups');
    for (const parent of cgroup.parents) parent.directory = '/sys/fs/cgroup/ringfence-test-no-such-group';
    expect(await runnerOf(host)(sh('exit 5'))).toMatchObject({ outcome: 'exit', exitCode: 5 });
  });
});

it('a host that has no descriptors left reports that, leaks none, and goes on when it has', async () => {
  const run = runnerOf(new Host());
  await run(sh('exit 0'));
  const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '';
  const open = readdirSync('/proc/self/fd').length;
  let results: SandboxResult[];
  try {
    execFileSync('prlimit', [`--nofile=${open + 25}:`, `--pid=${process.pid}`]);
    results = await Promise.all(Array.from({ length: 30 }, () => run({ ...sh('sleep 0.1'), stdin: 'x' })));
  } finally {
    // That program needs descriptors too.
    while (!raised(limit)) await sleep(50);
  }
  const refused = results.filter(({ outcome }) => outcome === 'spawn-error');
  expect(refused.length).toBeGreaterThan(0);
  for (const { error } of refused) expect(error).toMatchObject({ code: 'host-out-of-descriptors', errno: 'EMFILE' });
  for (const { outcome } of results) expect(['exit', 'spawn-error']).toContain(outcome);
  expect(await run(sh('exit 0'))).toMatchObject({ outcome: 'exit' });
  await sleep(1200);
  expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(open + 2);
});

function raised(limit: string): boolean {
  try {
    execFileSync('prlimit', [`--nofile=${limit}:`, `--pid=${process.pid}`]);
    return true;
  } catch {
    return false;
  }
}
