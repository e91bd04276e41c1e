import type { CgroupPlacement, CgroupProblem } from '../cgroup/placement.js';
import type { HostProcess } from '../cgroup/run-name.js';
import { nameRun } from '../cgroup/run-name.js';
import type { Fence } from '../run/result.js';
import { FenceUnavailable } from './errors.js';
import type { Controller, PlanCgroup } from './plan.js';

/**
 * The run's cgroup, with the controllers that this run needs.
 *
 * @throws FenceUnavailable when a fence that was not dropped has no controller here.
 */
export function planCgroup(
  placement: CgroupPlacement | CgroupProblem,
  host: HostProcess,
  limits: { cpus: number | null; cpuTimeMs: number | null },
  dropped: ReadonlySet<Fence>,
): PlanCgroup | null {
  const wanted: [Fence, Controller][] = [];
  if (!dropped.has('memory')) wanted.push(['memory', 'memory']);
  if (!dropped.has('pids')) wanted.push(['pids', 'pids']);
  if (limits.cpus !== null && !dropped.has('cpu')) wanted.push(['cpu', 'cpu']);
  // The time of a whole run: v2 counts it in every cgroup, and has none of these names.
  if (limits.cpuTimeMs !== null && !dropped.has('cpu')) wanted.push(['cpu', 'cpuacct']);
  const [first] = wanted;
  if (first === undefined) return null;
  if (placement.kind === 'unavailable') throw new FenceUnavailable(first[0], placement.code, placement.hint);
  for (const [fence, controller] of wanted) {
    if (placement.controllers.includes(controller) || (controller === 'cpuacct' && placement.version === 2)) continue;
    throw new FenceUnavailable(fence, 'CGROUP_CONTROLLER_MISSING', missingHint(controller, placement));
  }
  const used = new Set<Controller>(wanted.map(([, controller]) => controller)).add('cpuacct');
  const parents = placement.parents
    .map(({ controllers, directory }) => ({ controllers: controllers.filter((name) => used.has(name)), directory }))
    .filter(({ controllers }) => controllers.length > 0);
  return { version: placement.version, name: nameRun(host), parents };
}

function missingHint(controller: Controller, placement: CgroupPlacement): string {
  const where = placement.parents.map(({ directory }) => directory).join(', ');
  return (
    `no ${controller} controller can be used below ${where}; delegate it (systemd: Delegate=cpu memory pids in ` +
    `user@.service or the program's own unit), or run without limits.${controller === 'cpuacct' ? 'cpuTimeMs' : 'cpus'}`
  );
}
