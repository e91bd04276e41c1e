import { execFile } from 'node:child_process';
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { isAlive } from '../cgroup/sweep.js';
import { ownerOfRun } from '../cgroup/run-name.js';
import type { HostProcess } from '../cgroup/run-name.js';
import { isGuestUid } from '../plan/identity.js';

/**
 * Removes the scratch directories that runs without a mount namespace left below `directory` when their host was killed. Only
 * those of this account and of its guests: anyone may make names like these in /tmp, and have root follow them.
 */
export async function sweepScratch(directory: string, host: HostProcess, uid: number): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  for (const name of names) {
    const owner = ownerOfRun(name);
    if (owner === null || owner.pidNamespace !== host.pidNamespace || (await isAlive(owner))) continue;
    const path = join(directory, name);
    const info = await lstat(path).catch(() => null);
    if (info?.isDirectory() === true && (info.uid === uid || (uid === 0 && isGuestUid(info.uid)))) await removeTree(path);
  }
}

/** Node's own removal goes by whole paths, which a guest can make longer than the kernel takes; and needs readable directories. */
export async function removeTree(directory: string): Promise<void> {
  const failed = await rm(directory, { recursive: true, force: true, maxRetries: 3 }).then(() => null, (error: unknown) => error);
  if (failed === null) return;
  const run = promisify(execFile);
  await run('chmod', ['-R', 'u+rwX', '--', directory]).catch(() => null);
  await run('rm', ['-rf', '--', directory]).catch(() => {
    process.emitWarning(`cannot remove ${directory}: ${(failed as Error).message}`, { code: 'RINGFENCE_LEFTOVER' });
  });
}
