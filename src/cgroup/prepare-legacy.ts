import type { Controller } from '../plan/plan.js';
import type { CgroupParent, CgroupPlacement, CgroupProblem, CgroupSite } from './placement.js';
import { probeChild } from './probe-child.js';
import { notDelegatedLegacy, readOnly, unexpected } from './remedies.js';
import type { HostProcess } from './run-name.js';

const CONTROL_FILES: Record<Controller, string[]> = {
  memory: ['cgroup.procs', 'memory.limit_in_bytes', 'cgroup.event_control'],
  pids: ['cgroup.procs', 'pids.max'],
  cpu: ['cgroup.procs', 'cpu.cfs_quota_us'],
  cpuacct: ['cgroup.procs'],
};

/** v1 has nothing to enable and lets processes live in inner nodes: what is left is to see that children can be made. */
export async function prepareLegacy(site: CgroupSite, host: HostProcess, uid: number): Promise<CgroupPlacement | CgroupProblem> {
  const usable: CgroupParent[] = [];
  let refused = false;
  for (const parent of site.parents) {
    const files = parent.controllers.flatMap((controller) => CONTROL_FILES[controller]);
    const failure = await probeChild(parent.directory, files, host);
    if (failure === null) {
      usable.push({ controllers: parent.controllers, directory: parent.directory });
      continue;
    }
    if (!isRequired(parent)) continue;
    if (failure === 'EROFS') return readOnly([parent.mountPoint]);
    if (failure !== 'EACCES' && failure !== 'EPERM') return unexpected(`make a cgroup in ${parent.directory}`, { code: failure });
    refused = true;
  }
  if (refused) return notDelegatedLegacy(site.parents, uid);
  return { kind: 'ready', version: 1, parents: usable, controllers: usable.flatMap(({ controllers }) => controllers) };
}

function isRequired(parent: CgroupParent): boolean {
  return parent.controllers.includes('memory') || parent.controllers.includes('pids');
}
