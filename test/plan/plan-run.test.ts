import { chmodSync, existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';

import { beforeAll, describe, expect, it } from 'vitest';

import { problem } from '../../src/cgroup/remedies.js';
import type { HostFacts } from '../../src/host/facts.js';
import { CommandNotFound, FenceUnavailable } from '../../src/plan/errors.js';
import type { PlanOptions } from '../../src/plan/plan-run.js';
import { planRun } from '../../src/plan/plan-run.js';
import type { Fence } from '../../src/run/result.js';
import { temporaryDirectory, useOwnTmpdir } from '../support/temporary.js';
import { factsForPlans, optionsForPlans } from './planning.js';

useOwnTmpdir();

let facts: HostFacts;
beforeAll(async () => {
  facts = await factsForPlans();
});

const isRoot = process.geteuid?.() === 0;

function plan(change: Partial<PlanOptions> = {}, dropped: Fence[] = [], factChange: Partial<HostFacts> = {}) {
  return planRun(optionsForPlans(change), { ...facts, ...factChange }, new Set(dropped));
}

const mountAt = async (path: string, change: Partial<PlanOptions>) => (await plan(change)).plan.mounts.find((mount) => mount.path === path);

describe('planRun', () => {
  it('plans a whole run', async () => {
    const { plan: made, encoded, cwd, cwdOwnedBySandbox } = await plan({ args: ['a', ''] });
    expect(made).toMatchObject({
      namespaces: { user: true, mount: true, pid: true, network: true, ipc: true, uts: true, cgroup: true },
      executable: '/bin/true',
      argv: ['/bin/true', 'a', ''],
      cwd,
      hostname: 'ringfence',
      identity: { insideUid: 1000, insideGid: 1000 },
      cgroup: { version: 2, parents: [{ controllers: ['memory', 'pids'], directory: '/sys/fs/cgroup/x' }] },
    });
    expect(cwdOwnedBySandbox).toBe(true);
    expect(encoded.subarray(0, 4)).toEqual(Buffer.from('RGF1'));
  });

  it('has an owned cwd of its own below os.tmpdir(), and makes nothing there', async () => {
    const [first, second] = await Promise.all([plan(), plan()]);
    expect(first.cwd).toMatch(new RegExp(`^${tmpdir()}/ringfence-[0-9a-f]{12}$`));
    expect(first.cwd).not.toBe(second.cwd);
    expect(existsSync(first.cwd)).toBe(false);
    expect(first.plan.mounts).toContainEqual({ kind: 'scratch', path: first.cwd, mode: 0o700 });
  });

  it('names each cgroup once, after this process', async () => {
    const names = await Promise.all(Array.from({ length: 20 }, async () => (await plan()).plan.cgroup?.name ?? ''));
    expect(new Set(names).size).toBe(20);
    for (const name of names) expect(name).toMatch(new RegExp(`^ringfence-2-${process.pid}-1-[0-9a-f]+$`));
  });

  it('binds the caller\'s cwd at its real path and reports that', async () => {
    const directory = realpathSync(temporaryDirectory());
    mkdirSync(`${directory}/real`);
    symlinkSync('real', `${directory}/link`);
    const { plan: made, cwd, cwdOwnedBySandbox } = await plan({ cwd: `${directory}/link` });
    expect(cwd).toBe(`${directory}/real`);
    expect(made.cwd).toBe(cwd);
    expect(cwdOwnedBySandbox).toBe(false);
    expect(made.mounts).toContainEqual({ kind: 'symlink', path: `${directory}/link`, target: cwd });
    expect(made.mounts).toContainEqual({
      kind: 'bind', path: cwd, source: cwd, writable: true, idMap: isRoot ? 'required' : 'none', mayBeMissing: false,
    });
    expect(await mountAt(cwd, { cwd, cwdReadOnly: true })).toMatchObject({ writable: false, idMap: isRoot ? 'optional' : 'none' });
  });

  it('gives a cwd that is read for other reasons as well the wider access', async () => {
    const directory = realpathSync(temporaryDirectory());
    const filesystem = { read: [directory, directory], write: [], tmpMb: 1 };
    expect(await mountAt(directory, { cwd: directory, filesystem })).toMatchObject({ writable: true });
  });

  it('uses the root directory of the sandbox for a read-only cwd there', async () => {
    const { plan: made } = await plan({ cwd: '/', cwdReadOnly: true });
    expect(made.cwd).toBe('/');
    expect(made.mounts.filter(({ path }) => path === '/')).toEqual([]);
  });

  it('looks the command up in the PATH that the guest has, and says so in PATH', async () => {
    const directory = realpathSync(temporaryDirectory());
    writeFileSync(`${directory}/tool`, '#!/bin/sh\n');
    chmodSync(`${directory}/tool`, 0o755);
    const { plan: made } = await plan({ command: 'tool', env: { PATH: directory } });
    expect(made).toMatchObject({ executable: `${directory}/tool`, argv: ['tool'], env: { PATH: directory } });
    expect(made.mounts).toContainEqual(expect.objectContaining({ kind: 'bind', path: `${directory}/tool`, writable: false }));
    await expect(plan({ command: 'true', env: { PATH: directory } })).rejects.toThrow(CommandNotFound);
    await expect(plan({ command: 'true', env: { PATH: directory } })).rejects.toThrow('spawn true ENOENT');
  });

  it('names the guest, not the host\'s account, in its user database', async () => {
    const { plan: made } = await plan({ env: { HOME: '/home/me' } });
    const content = made.mounts.flatMap((mount) => (mount.kind === 'file' && mount.path === '/etc/passwd' ? [mount.content] : []));
    expect(content).toEqual(['guest:x:1000:1000:guest:/home/me:/bin/sh\n']);
    const hostile = await plan({ env: { HOME: '/h\nroot:x:0:0::/:/bin/sh' } });
    const lines = hostile.plan.mounts.flatMap((mount) => (mount.kind === 'file' && mount.path === '/etc/passwd' ? [mount.content] : []));
    expect(lines).toEqual(['guest:x:1000:1000:guest:/:/bin/sh\n']);
  });

  it('rejects a path that cannot be granted before it looks for the command', async () => {
    const wrong = plan({ command: '/nope', filesystem: { read: ['/nope'], write: [], tmpMb: 1 } });
    await expect(wrong).rejects.toThrow(new RangeError('filesystem.read[0] (/nope) must exist'));
  });

  it('applies the heap of Node', async () => {
    expect(await plan({ command: process.execPath, nodeHeapMb: 77 })).toMatchObject({
      nodeHeapMbApplied: 77,
      plan: { env: { NODE_OPTIONS: '--max-old-space-size=77' } },
    });
  });

  it('shares the host\'s network when that was asked for', async () => {
    const { plan: made } = await plan({ network: 'host' });
    expect(made.namespaces.network).toBe(false);
    expect(made.mounts.map(({ path }) => path)).toContain('/etc/hosts');
  });
});

describe('fences that cannot be had', () => {
  const none = problem('CGROUP_READ_ONLY', 'remount it');

  it('refuses the run with the code and the remedy', async () => {
    const error: unknown = await plan({}, [], { cgroup: none }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FenceUnavailable);
    expect(error).toMatchObject({ fence: 'memory', code: 'CGROUP_READ_ONLY', hint: 'remount it' });
  });

  it('comes to an end when a best-effort host drops what it is told to, one after the other', async () => {
    const dropped: Fence[] = [];
    for (let attempt = 0; attempt < 5; attempt++) {
      const error: unknown = await plan({ limits: { ...optionsForPlans().limits, cpus: 1 } }, dropped, { cgroup: none }).then(
        () => null,
        (reason: unknown) => reason,
      );
      if (error === null) break;
      dropped.push((error as FenceUnavailable).fence);
    }
    expect(dropped).toEqual(['memory', 'pids', 'cpu']);
  });

  it('refuses cpus without a cpu controller, and only then', async () => {
    const cgroup = { ...placementWithoutCpu() };
    await expect(plan({}, [], { cgroup })).resolves.toBeDefined();
    const limits = { ...optionsForPlans().limits, cpus: 1 };
    await expect(plan({ limits }, [], { cgroup })).rejects.toMatchObject({ fence: 'cpu', code: 'CGROUP_CONTROLLER_MISSING' });
    expect((await plan({ limits }, ['cpu'], { cgroup })).plan.limits.cpuQuotaUs).toBe(0);
  });

  it("refuses to run the guest as the machine's root", async () => {
    const onlyRoot = [{ first: 0, outer: 0, count: 1 }];
    await expect(plan({}, [], { uid: 0, gid: 0, uidMap: onlyRoot, gidMap: onlyRoot })).rejects.toMatchObject({ fence: 'identity' });
  });

  it('uses every hierarchy of v1 that the run needs, and counts its cpu time', async () => {
    const cgroup = {
      kind: 'ready' as const,
      version: 1 as const,
      parents: [
        { controllers: ['memory' as const], directory: '/m' },
        { controllers: ['cpu' as const, 'cpuacct' as const], directory: '/c' },
        { controllers: ['pids' as const], directory: '/p' },
      ],
      controllers: ['memory', 'cpu', 'cpuacct', 'pids'] as ('memory' | 'pids' | 'cpu' | 'cpuacct')[],
    };
    const { plan: made } = await plan({}, ['memory'], { cgroup });
    expect(made.cgroup?.parents).toEqual([
      { controllers: ['cpuacct'], directory: '/c' },
      { controllers: ['pids'], directory: '/p' },
    ]);
  });
});

function placementWithoutCpu() {
  const controllers: ('memory' | 'pids')[] = ['memory', 'pids'];
  return { kind: 'ready' as const, version: 2 as const, parents: [{ controllers, directory: '/x' }], controllers };
}

describe('fences that were dropped', () => {
  it('keeps the pid namespace, which ends every process, as long as there is any namespace', async () => {
    expect((await plan({}, ['pids', 'memory'])).plan).toMatchObject({ namespaces: { pid: true }, cgroup: null, limits: { pids: 0 } });
    expect((await plan({}, ['pids', 'identity'])).plan.namespaces.pid).toBe(true);
    const { plan: bare } = await plan({}, ['pids', 'identity', 'filesystem', 'network']);
    expect(bare.namespaces).toEqual({ user: false, mount: false, pid: false, network: false, ipc: false, uts: false, cgroup: false });
  });

  it('names a directory by its real path where there is no mount namespace to have it elsewhere', async () => {
    const before = process.env['TMPDIR'];
    symlinkSync(tmpdir(), `${tmpdir()}/link`);
    process.env['TMPDIR'] = `${tmpdir()}/link`;
    try {
      const { plan: made, cwd, cwdOwnedBySandbox } = await plan({}, ['filesystem']);
      expect(cwdOwnedBySandbox).toBe(true);
      expect(dirname(cwd)).toBe(realpathSync(tmpdir()));
      expect(made).toMatchObject({ cwd, mounts: [] });
    } finally {
      if (before !== undefined) process.env['TMPDIR'] = before;
    }
  });
});
