/** Options and facts for tests of plans: this machine's own, with a cgroup placement that no test writes to. */
import type { CgroupPlacement } from '../../src/cgroup/placement.js';
import type { HostFacts } from '../../src/host/facts.js';
import { Profiles } from '../../src/seccomp/load.js';
import { readBaseView } from '../../src/plan/base-view.js';
import type { Grant } from '../../src/plan/grants.js';
import type { PlanOptions } from '../../src/plan/plan-run.js';

export const placement: CgroupPlacement = {
  kind: 'ready',
  version: 2,
  parents: [{ controllers: ['memory', 'pids', 'cpu'], directory: '/sys/fs/cgroup/x' }],
  controllers: ['memory', 'pids', 'cpu'],
};

export async function factsForPlans(change: Partial<HostFacts> = {}): Promise<HostFacts> {
  const everything = [{ first: 0, outer: 0, count: 4294967295 }];
  return {
    pid: process.pid,
    startTime: 1,
    pidNamespace: 2,
    uid: process.geteuid?.() ?? -1,
    gid: process.getegid?.() ?? -1,
    uidMap: everything,
    gidMap: everything,
    kernelRelease: '6.1.0',
    base: await readBaseView(process.env['PATH']),
    homes: [],
    cgroup: placement,
    profiles: new Profiles(),
    ...change,
  };
}

export function optionsForPlans(change: Partial<PlanOptions> = {}): PlanOptions {
  return {
    command: '/bin/true',
    args: [],
    cwd: null,
    cwdReadOnly: false,
    env: {},
    nodeHeapMb: null,
    timeoutMs: 5000,
    gracePeriodMs: 100,
    network: 'none',
    seccomp: null,
    filesystem: { read: [], write: [], tmpMb: 16 },
    limits: { memoryMb: 64, pids: 16, cpus: null, cpuTimeMs: null, openFiles: 64, fileSizeMb: null },
    ...change,
  };
}

/** A grant by its path alone. */
export function grantOf(real: string, change: Partial<Grant> = {}): Grant {
  return { field: 'filesystem.read[0]', given: real, real, writable: false, uid: 0, gid: 0, ...change };
}
