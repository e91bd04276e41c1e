import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import { removeLeftover } from '../cgroup/sweep.js';
import type { PlannedRun } from '../plan/plan-run.js';

/** Removes what a launcher that was killed could not: processes of the run's cgroup and the cgroup itself. */
export async function removeCgroup({ plan }: PlannedRun): Promise<void> {
  if (plan.cgroup === null) return;
  const { name, parents } = plan.cgroup;
  await Promise.all(parents.map(({ directory }) => removeLeftover(join(directory, name))));
}

/** Removes an owned working directory that is a real one, because the run had no mount namespace. */
export async function removeOwnedCwd({ plan, cwd, cwdOwnedBySandbox }: PlannedRun): Promise<void> {
  if (!cwdOwnedBySandbox || plan.namespaces.mount) return;
  await rm(cwd, { recursive: true, force: true, maxRetries: 3 });
}
