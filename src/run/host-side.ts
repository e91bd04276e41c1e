import { chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { removeLeftover } from '../cgroup/sweep.js';
import type { PlannedRun } from '../plan/plan-run.js';

/**
 * Makes the scratch directories of a run without a mount namespace, real ones on the host: everywhere else they exist inside
 * the sandbox only.
 */
export async function makeHostDirectories({ plan, hostDirectories, hostFiles }: PlannedRun): Promise<void> {
  const { outsideUid, outsideGid } = plan.identity;
  for (const directory of hostDirectories) {
    await mkdir(directory, { mode: 0o700 });
    if (outsideUid !== process.geteuid?.()) await chown(directory, outsideUid, outsideGid);
  }
  for (const { path, content } of hostFiles) await writeFile(path, content, { mode: 0o444, flag: 'wx' });
}

/** Removes them, with whatever the guest has left there. */
export async function removeHostDirectories({ hostDirectories }: PlannedRun): Promise<void> {
  const outermost = hostDirectories.filter((path) => !hostDirectories.some((other) => path.startsWith(`${other}/`)));
  await Promise.all(outermost.map(removeTree));
}

/** Node's own removal goes by whole paths, which a guest can make longer than the kernel takes; and needs readable directories. */
async function removeTree(directory: string): Promise<void> {
  const failed = await rm(directory, { recursive: true, force: true, maxRetries: 3 }).then(() => null, (error: unknown) => error);
  if (failed === null) return;
  const run = promisify(execFile);
  await run('chmod', ['-R', 'u+rwX', '--', directory]).catch(() => null);
  await run('rm', ['-rf', '--', directory]).catch(() => {
    process.emitWarning(`cannot remove ${directory}: ${(failed as Error).message}`, { code: 'RINGFENCE_LEFTOVER' });
  });
}

/** Removes what a launcher that was killed could not: the processes of the run's cgroup and the cgroup itself. */
export async function removeCgroup({ plan }: PlannedRun): Promise<void> {
  if (plan.cgroup === null) return;
  const { name, parents } = plan.cgroup;
  await Promise.all(parents.map(({ directory }) => removeLeftover(join(directory, name))));
}
