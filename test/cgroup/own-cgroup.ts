/** Real cgroups for tests: children of the place that this lane's runs get, removed with the test. */
import { mkdirSync, readFileSync, readlinkSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { onTestFinished } from 'vitest';
import type { TestContext } from 'vitest';

import { placeCgroups } from '../../src/cgroup/place.js';
import type { CgroupPlacement } from '../../src/cgroup/placement.js';
import type { HostProcess } from '../../src/cgroup/run-name.js';
import { startTimeOf } from '../../src/cgroup/run-name.js';
import { needs } from '../support/skip.js';

export const uid = process.geteuid?.() ?? -1;

export const thisProcess: HostProcess = {
  pid: process.pid,
  startTime: startTimeOf(readFileSync('/proc/self/stat', 'utf8')) ?? 0,
  pidNamespace: Number(/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]),
};

export async function ownPlacement(context: TestContext): Promise<CgroupPlacement> {
  const placement = await placeCgroups(thisProcess, uid, process.env['RINGFENCE_CGROUP']);
  if (placement.kind === 'ready') return placement;
  needs(context, `a cgroup of its own: ${placement.hint}`);
  throw new Error('unreachable');
}

export function makeCgroup(parent: string, name: string): string {
  const directory = path.join(parent, name);
  mkdirSync(directory);
  onTestFinished(() => {
    try {
      rmdirSync(directory);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  });
  return directory;
}

/** Moves this process on v2, and back when the test is over. */
export function moveThisProcess(directory: string, home: string): void {
  writeFileSync(path.join(directory, 'cgroup.procs'), String(process.pid));
  onTestFinished(() => writeFileSync(path.join(home, 'cgroup.procs'), String(process.pid)));
}

/** Path of this process in the v2 hierarchy. */
export function whereThisProcessIs(): string {
  return /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '';
}
