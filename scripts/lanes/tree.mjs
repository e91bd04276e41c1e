/** A copy of the project for a lane that must not, or cannot, work in the project's own directory. */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import path from 'node:path';
import { execa } from 'execa';

export const projectRoot = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** Who an ordinary user of the lanes is, where root makes one up: in no passwd file, like a user of a container. */
export const ordinaryUid = process.getuid() === 0 ? 12345 : process.getuid();

/**
 * Copies sources, dependencies and build results into `directory`, which must exist; the owner becomes `uid`.
 * @param {{ directory: string, uid: number, signal?: AbortSignal }} options
 */
export async function copyTree({ directory, uid, signal }) {
  const entries = readdirSync(projectRoot)
    .filter((name) => name !== '.git')
    .map((name) => path.join(projectRoot, name));
  await execa('cp', ['-a', '--reflink=auto', '-t', directory, '--', ...entries], { cancelSignal: signal });
  if (uid !== process.getuid()) {
    await execa('chown', ['-R', '-h', `${uid}:${uid}`, directory], { cancelSignal: signal });
  }
}
