import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, it, onTestFinished } from 'vitest';
import type { TestContext } from 'vitest';

import { nameRun } from '../../src/cgroup/run-name.js';
import type { HostProcess } from '../../src/cgroup/run-name.js';
import { removeLeftover, sweepLeftovers } from '../../src/cgroup/sweep.js';
import { makeCgroup, ownPlacement, thisProcess } from './own-cgroup.js';

/** A pid that nobody has: above the kernel's PID_MAX_LIMIT. */
const dead: HostProcess = { ...thisProcess, pid: 4194305 };

/** Leftovers of a host in a parent of this test's own, so that files that run beside it do not sweep them. */
async function leftover(context: TestContext, host: HostProcess) {
  const { parents } = await ownPlacement(context);
  const place = makeCgroup(parents[0]?.directory ?? '', `test-sweep-${process.pid}`);
  const parent = { controllers: [], directory: place };
  return { parent, directory: makeCgroup(place, nameRun(host)) };
}

function inhabit(directory: string) {
  const child = spawn('sleep', ['1000']);
  onTestFinished(() => void child.kill('SIGKILL'));
  const gone = once(child, 'exit');
  writeFileSync(path.join(directory, 'cgroup.procs'), String(child.pid));
  return { child, gone };
}

describe('sweepLeftovers', () => {
  it('removes what a dead host left', async (context) => {
    const { parent, directory } = await leftover(context, dead);
    expect(await sweepLeftovers([parent], thisProcess)).toBe(1);
    expect(existsSync(directory)).toBe(false);
  });

  it('kills what still lives in it', async (context) => {
    const { parent, directory } = await leftover(context, dead);
    const { child, gone } = inhabit(directory);
    expect(await sweepLeftovers([parent], thisProcess)).toBe(1);
    await gone;
    expect(child.signalCode).toBe('SIGKILL');
    expect(existsSync(directory)).toBe(false);
  });

  it('knows a dead host by its start time when its pid is in use again', async (context) => {
    const { parent, directory } = await leftover(context, { ...thisProcess, startTime: thisProcess.startTime + 1 });
    await sweepLeftovers([parent], thisProcess);
    expect(existsSync(directory)).toBe(false);
  });

  it('leaves a live host alone', async (context) => {
    const { parent, directory } = await leftover(context, thisProcess);
    const { child } = inhabit(directory);
    expect(await sweepLeftovers([parent], thisProcess)).toBe(0);
    expect(existsSync(directory)).toBe(true);
    expect(child.exitCode ?? child.signalCode).toBeNull();
    expect(await removeLeftover(directory)).toBe(true);
  });

  it('leaves other pid namespaces alone, whose pids mean nothing here', async (context) => {
    const { parent, directory } = await leftover(context, { ...dead, pidNamespace: dead.pidNamespace + 1 });
    expect(await sweepLeftovers([parent], thisProcess)).toBe(0);
    expect(existsSync(directory)).toBe(true);
  });

  it('leaves everything alone that has another name', async (context) => {
    const { parent } = await leftover(context, thisProcess);
    const names = ['ringfence-host', 'system.slice', `${nameRun(dead)}.bak`];
    const others = names.map((name) => makeCgroup(parent.directory, name));
    expect(await sweepLeftovers([parent], thisProcess)).toBe(0);
    for (const directory of others) expect(existsSync(directory)).toBe(true);
  });
});

describe('removeLeftover', () => {
  it('is content with what is gone already', async () => {
    expect(await removeLeftover('/sys/fs/cgroup/no/such/cgroup')).toBe(true);
  });
});
