import { access, constants, mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';

import type { HostProcess } from './run-name.js';
import { nameRun } from './run-name.js';

/**
 * Makes a child of a cgroup, as every run will, looks for the control files in it and removes it again.
 *
 * @returns the errno's name of what failed, or null. A missing control file is ENOENT.
 */
export async function probeChild(parent: string, files: readonly string[], host: HostProcess): Promise<string | null> {
  const child = join(parent, nameRun(host));
  try {
    await mkdir(child);
  } catch (error) {
    return codeOf(error);
  }
  try {
    for (const file of files) await access(join(child, file), constants.W_OK);
    return null;
  } catch (error) {
    return codeOf(error);
  } finally {
    await rmdir(child);
  }
}

export function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  return code;
}
