import { chown, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { removeLeftover } from '../cgroup/sweep.js';
import type { PlannedRun } from '../plan/plan-run.js';

/**
 * Makes the owned working directory of a run without a mount namespace, a real one on the host: everywhere else it exists
 * inside the sandbox only.
 */
export async function makeOwnedCwd(planned: PlannedRun): Promise<void> {
  if (!isRealOwnedCwd(planned)) return;
  const { outsideUid, outsideGid } = planned.plan.identity;
  await mkdir(planned.cwd, { mode: 0o700 });
  if (outsideUid !== process.geteuid?.()) await chown(planned.cwd, outsideUid, outsideGid);
}

export async function removeOwnedCwd(planned: PlannedRun): Promise<void> {
  if (isRealOwnedCwd(planned)) await rm(planned.cwd, { recursive: true, force: true, maxRetries: 3 });
}

/** Removes what a launcher that was killed could not: the processes of the run's cgroup and the cgroup itself. */
export async function removeCgroup({ plan }: PlannedRun): Promise<void> {
  if (plan.cgroup === null) return;
  const { name, parents } = plan.cgroup;
  await Promise.all(parents.map(({ directory }) => removeLeftover(join(directory, name))));
}

function isRealOwnedCwd({ plan, cwdOwnedBySandbox }: PlannedRun): boolean {
  return cwdOwnedBySandbox && !plan.namespaces.mount;
}
