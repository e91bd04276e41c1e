import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, it, onTestFinished } from 'vitest';
import type { TestContext } from 'vitest';

import { placeCgroups } from '../../src/cgroup/place.js';
import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { makeCgroup, moveThisProcess, ownPlacement, thisProcess, uid, whereThisProcessIs } from './own-cgroup.js';

/** A new cgroup with memory and pids, and where this process was before. */
async function newCgroup(context: TestContext): Promise<{ directory: string; home: string }> {
  belongsHere(context, whereAmI().cgroup === 2, 'on cgroup v2');
  const { parents } = await ownPlacement(context);
  return { directory: makeCgroup(parents[0]?.directory ?? '', `test-${process.pid}`), home: `/sys/fs/cgroup${whereThisProcessIs()}` };
}

const place = () => placeCgroups(thisProcess, uid, undefined);

describe('a host in a cgroup of its own', () => {
  it('is moved into a leaf, and its runs get their place beside it', async (context) => {
    const { directory, home } = await newCgroup(context);
    const leaf = path.join(directory, 'ringfence-host');
    moveThisProcess(directory, home);
    const placement = await place();
    expect(placement).toMatchObject({ kind: 'ready', version: 2, parents: [{ directory }] });
    expect(whereThisProcessIs()).toMatch(/\/ringfence-host$/);
    expect(readFileSync(path.join(directory, 'cgroup.subtree_control'), 'utf8')).toMatch(/\bpids\b/);
    // Another start of the same process, or one of a child of it.
    expect(await place()).toEqual(placement);
    expect(whereThisProcessIs()).toMatch(/[^/]\/ringfence-host$/);
    expect(existsSync(path.join(leaf, 'ringfence-host'))).toBe(false);
    writeFileSync(path.join(home, 'cgroup.procs'), String(process.pid));
    removeLater(leaf);
  });

  it('stays where it is when others live there too, and names the remedy', async (context) => {
    const { directory, home } = await newCgroup(context);
    const neighbour = spawn('sleep', ['1000']);
    onTestFinished(async () => {
      neighbour.kill('SIGKILL');
      await once(neighbour, 'exit');
    });
    writeFileSync(path.join(directory, 'cgroup.procs'), String(neighbour.pid));
    moveThisProcess(directory, home);
    expect(await place()).toMatchObject({
      kind: 'unavailable',
      code: 'CGROUP_BUSY',
      hint: expect.stringContaining('systemd-run --user --scope -p Delegate=yes -- COMMAND') as string,
    });
    expect(`/sys/fs/cgroup${whereThisProcessIs()}`).toBe(directory);
    expect(existsSync(path.join(directory, 'ringfence-host'))).toBe(false);
  });

  it('is told which controllers the level above keeps to itself', async (context) => {
    const { directory, home } = await newCgroup(context);
    const below = makeCgroup(directory, 'below');
    moveThisProcess(below, home);
    expect(await place()).toMatchObject({
      kind: 'unavailable',
      code: 'CGROUP_CONTROLLER_MISSING',
      hint: expect.stringContaining('memory and pids') as string,
    });
  });
});

/** The leaf has to go before the cgroup around it, whose removal was registered earlier and so runs later. */
function removeLater(leaf: string): void {
  onTestFinished(async () => {
    const { rmdirSync } = await import('node:fs');
    rmdirSync(leaf);
  });
}
