import { execFile } from 'node:child_process';
import { lstat, readdir, rmdir } from 'node:fs/promises';
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

/**
 * By another process, which a guest can leave as many files as it likes: Node's own removal reads all names at once. It goes by
 * whole paths besides, which can be longer than the kernel takes, and needs readable directories.
 */
export async function removeTree(directory: string): Promise<void> {
  if (await rmdir(directory).then(() => true, () => false)) return;
  const run = promisify(execFile);
  const remove = () => run('rm', ['-rf', '--', directory]);
  await remove()
    .catch(() => run('chmod', ['-R', 'u+rwX', '--', directory]).catch(() => null).then(remove))
    .catch((error: Error) => void process.emitWarning(`cannot remove ${directory}: ${error.message}`, { code: 'RINGFENCE_LEFTOVER' }));
}
