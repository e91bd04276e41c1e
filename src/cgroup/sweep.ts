import { readFile, readdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import type { CgroupParent } from './placement.js';
import type { HostProcess } from './run-name.js';
import { ownerOfRun, startTimeOf } from './run-name.js';

const ATTEMPTS = 25;
const PAUSE_MS = 20;

/**
 * Removes the cgroups that runs of dead hosts left behind, with whatever still lives in them. Only those of this pid
 * namespace: what a pid of another one means cannot be told from here. What cannot be removed stays for the next start.
 *
 * @returns how many were removed.
 */
export async function sweepLeftovers(parents: readonly CgroupParent[], host: HostProcess): Promise<number> {
  let removed = 0;
  for (const { directory } of parents) {
    for (const name of await readdir(directory)) {
      const owner = ownerOfRun(name);
      if (owner === null || owner.pidNamespace !== host.pidNamespace || (await isAlive(owner))) continue;
      if (await removeLeftover(join(directory, name))) removed++;
    }
  }
  return removed;
}

/** Whether the process that made a run still lives; true where that cannot be told. */
export async function isAlive(owner: HostProcess): Promise<boolean> {
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  // A /proc with hidepid shows nothing of other accounts: then the pid alone has to do.
  const stat = await readFile(`/proc/${owner.pid}/stat`, 'utf8').catch(() => null);
  return stat === null || startTimeOf(stat) === owner.startTime;
}

/** Removes one run's cgroup with whatever lives in it. False when it is still there after about half a second. */
export async function removeLeftover(directory: string): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      await rmdir(directory);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return true;
      // EBUSY: processes inside, or on their way out, perhaps because the dead host's launcher is at it too.
      if (code !== 'EBUSY') return false;
    }
    await killAll(directory);
    await sleep(PAUSE_MS);
  }
  return false;
}

async function killAll(directory: string): Promise<void> {
  const asGroup = await writeFile(join(directory, 'cgroup.kill'), '1').then(() => true, () => false);
  if (asGroup) return;
  const members = await readFile(join(directory, 'cgroup.procs'), 'utf8').catch(() => '');
  for (const pid of members.split('\n').map(Number)) {
    // 0 stands for a process of another pid namespace, and kill(0) would be this process's own group.
    if (!Number.isInteger(pid) || pid <= 1 || pid === process.pid) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ESRCH' && code !== 'EPERM') throw error;
    }
  }
}
