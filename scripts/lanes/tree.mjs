/** A copy of the project for a lane that must not, or cannot, work in the project's own directory. */
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import path from 'node:path';
import { execa } from 'execa';

export const projectRoot = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** Who an ordinary user of the lanes is, where root makes one up: in no passwd file, like a user of a container. */
export const ordinaryUid = process.getuid() === 0 ? 12345 : process.getuid();

/**
 * Copies sources, dependencies and what was built of them into `directory`, which must exist; the owner becomes `uid`.
 * @param {{ directory: string, uid: number, signal?: AbortSignal }} options
 */
export async function copyTree({ directory, uid, signal }) {
  const entries = readdirSync(projectRoot).filter((name) => !['.git', 'build', 'prebuilds'].includes(name));
  // The rest of what is built is big, and only needed to build or to pack.
  const built = ['build/Release', 'build/fixtures'].filter((name) => existsSync(path.join(projectRoot, name)));
  mkdirSync(path.join(directory, 'build'));
  const copy = ['-a', '--reflink=auto', '--parents', '-t', directory, '--', ...entries, ...built];
  await execa('cp', copy, { cwd: projectRoot, cancelSignal: signal });
  if (uid !== process.getuid()) {
    await execa('chown', ['-R', '-h', `${uid}:${uid}`, directory], { cancelSignal: signal });
  }
}
