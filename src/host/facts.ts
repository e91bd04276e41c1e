import { readFile, readlink, realpath } from 'node:fs/promises';
import { release, tmpdir } from 'node:os';

import { placeCgroups } from '../cgroup/place.js';
import type { CgroupPlacement, CgroupProblem } from '../cgroup/placement.js';
import type { HostProcess } from '../cgroup/run-name.js';
import { Profiles } from '../seccomp/load.js';
import { startTimeOf } from '../cgroup/run-name.js';
import { sweepScratch } from './host-scratch.js';
import type { BaseView } from '../plan/base-view.js';
import { readBaseView } from '../plan/base-view.js';
import type { HostAccount } from '../plan/identity.js';
import { parseIdMap } from '../plan/identity.js';

/** What plans need to know of this process and its host, and what does not change from run to run. */
export interface HostFacts extends HostProcess, HostAccount {
  /** For example `6.1.0-18-amd64`. */
  kernelRelease: string;
  base: BaseView;
  /** Home directories of the host's account, by every name and by their real paths. */
  homes: string[];
  /** Where runs get their cgroups, or why they cannot. */
  cgroup: CgroupPlacement | CgroupProblem;
  /** The system-call filters that callers bring, compiled. */
  profiles: Profiles;
}

/**
 * Reads the facts, prepares the host's cgroup for runs (on v2 this may move the process into a leaf below its own cgroup)
 * and removes cgroups and scratch directories that dead hosts left behind. Once per process: the caller keeps the answer.
 *
 * @throws when /proc of this process cannot be read.
 */
export async function readHostFacts(): Promise<HostFacts> {
  const uid = process.geteuid?.() ?? -1;
  const gid = process.getegid?.() ?? -1;
  const [uidMap, gidMap, stat, pidNamespace, base, homes] = await Promise.all([
    readFile('/proc/self/uid_map', 'utf8'),
    readFile('/proc/self/gid_map', 'utf8'),
    readFile('/proc/self/stat', 'utf8'),
    readlink('/proc/self/ns/pid'),
    readBaseView(process.env['PATH']),
    readHomes(uid),
  ]);
  const startTime = startTimeOf(stat);
  const inode = /^pid:\[(\d+)\]$/.exec(pidNamespace)?.[1];
  if (startTime === null || inode === undefined) throw new Error('/proc/self is not as proc(5) describes it; mount a /proc of this pid namespace');
  const host: HostProcess = { pid: process.pid, startTime, pidNamespace: Number(inode) };
  const [cgroup] = await Promise.all([placeCgroups(host, uid, process.env['RINGFENCE_CGROUP']), sweepScratch(tmpdir(), host, uid)]);
  return { ...host, uid, gid, uidMap: parseIdMap(uidMap), gidMap: parseIdMap(gidMap), kernelRelease: release(), base, homes, cgroup, profiles: new Profiles() };
}

async function readHomes(uid: number): Promise<string[]> {
  const named = [process.env['HOME'], await homeOfAccount(uid)].filter((home) => home !== undefined && home.startsWith('/') && home !== '/');
  const real = await Promise.all(named.map((home) => realpath(home ?? '').catch(() => home)));
  return [...new Set([...named, ...real])].filter((home) => home !== undefined);
}

/** Not os.userInfo(), which asks whatever serves user names on this network, on the event loop. */
async function homeOfAccount(uid: number): Promise<string | undefined> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const fields = passwd.split('\n').map((line) => line.split(':'));
  return fields.find(([, , id]) => id === String(uid))?.[5];
}
