import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, it } from 'vitest';

import { placeCgroups } from '../../src/cgroup/place.js';
import { probeChild } from '../../src/cgroup/probe-child.js';
import { ownerOfRun } from '../../src/cgroup/run-name.js';
import { makeCgroup, ownPlacement, thisProcess, uid } from './own-cgroup.js';

describe('placeCgroups', () => {
  it('finds a place with memory and pids for the runs of this process', async (context) => {
    const { parents, controllers } = await ownPlacement(context);
    expect(controllers).toEqual(expect.arrayContaining(['memory', 'pids']));
    expect(parents.flatMap((parent) => parent.controllers).sort()).toEqual([...controllers].sort());
  });

  it('leaves nothing of its probes behind', async (context) => {
    const { parents } = await ownPlacement(context);
    for (const { directory } of parents) {
      const left = readdirSync(directory).filter((name) => ownerOfRun(name)?.pid === process.pid);
      expect(left).toEqual([]);
    }
  });

  it('comes to the same place again', async (context) => {
    expect(await ownPlacement(context)).toEqual(await ownPlacement(context));
  });

  it('takes another place by its directory, in each hierarchy', async (context) => {
    const { version, parents } = await ownPlacement(context);
    const name = `test-${process.pid}`;
    const made = parents.map(({ directory }) => makeCgroup(directory, name));
    const place = await placeCgroups(thisProcess, uid, made[0]);
    if (version === 2) {
      // The parent of it hands controllers down to it.
      expect(place).toMatchObject({ kind: 'ready', parents: [{ directory: made[0] }] });
      expect(readFileSync(path.join(made[0] ?? '', 'cgroup.subtree_control'), 'utf8')).toMatch(/memory pids|pids memory|memory.*pids/);
    } else {
      expect(place).toMatchObject({ kind: 'ready' });
      const directories = place.kind === 'ready' ? place.parents.map(({ directory }) => directory) : [];
      expect(directories).toContain(made[0]);
    }
  });

  it('reports a place that does not exist', async () => {
    expect(await placeCgroups(thisProcess, uid, '/ringfence-test-nowhere')).toMatchObject({ kind: 'unavailable', code: 'CGROUP_OVERRIDE_INVALID' });
  });
});

describe('probeChild', () => {
  it('answers with what the kernel says', async (context) => {
    const { parents } = await ownPlacement(context);
    const directory = parents[0]?.directory ?? '';
    expect(await probeChild(directory, ['cgroup.procs'], thisProcess)).toBeNull();
    expect(await probeChild(directory, ['no.such.file'], thisProcess)).toBe('ENOENT');
    expect(await probeChild(path.join(directory, 'nowhere'), [], thisProcess)).toBe('ENOENT');
    expect(existsSync(path.join(directory, 'nowhere'))).toBe(false);
  });
});
