import { randomBytes } from 'node:crypto';

import { FenceUnavailable } from './errors.js';
import type { Grant } from './grants.js';
import { isBelow, isWithin } from './paths.js';
import { realPathOf } from './real-path.js';
import type { Scratch } from './scratch.js';

/** What a run without a mount namespace has on the host for itself. */
export interface HostScratch extends Scratch {
  /** Real directories, parents first: made before the launch, the guest's own, and removed with all that is in them. */
  made: string[];
  /** The directory of all but the working directory. */
  root: string;
}

/**
 * HOME, TMPDIR and an owned working directory as real directories, changed in `env`: /tmp and the home are the host's there.
 * A HOME or TMPDIR that the caller granted stays.
 *
 * @param hostTmpdir without symlinks
 */
export async function planHostScratch(
  env: Record<string, string>,
  grants: readonly Grant[],
  hostTmpdir: string,
  ownsCwd: boolean,
): Promise<HostScratch> {
  const name = () => `${hostTmpdir === '/' ? '' : hostTmpdir}/ringfence-${randomBytes(6).toString('hex')}`;
  const ownedCwd = ownsCwd ? name() : null;
  const root = name();
  const made = ownedCwd === null ? [root] : [ownedCwd, root];
  for (const [variable, directory] of [['HOME', 'home'], ['TMPDIR', 'tmp']] as const) {
    if (variable === 'HOME' && env[variable] === undefined) continue;
    if (await isGranted(env[variable], grants)) continue;
    env[variable] = `${root}/${directory}`;
    made.push(env[variable]);
  }
  // Git takes a file that it may not read for an error, unless it is not to look.
  env['GIT_CONFIG_NOSYSTEM'] ??= '1';
  const directories = (ownedCwd === null ? [root] : [ownedCwd, root]).map((path) => ({ path, mode: 0o700 }));
  return { directories, links: new Map(), ownedCwd, made, root };
}

async function isGranted(path: string | undefined, grants: readonly Grant[]): Promise<boolean> {
  if (path === undefined || !path.startsWith('/')) return false;
  const real = await realPathOf(path).catch(() => null);
  return real !== null && grants.some((grant) => grant.writable && isWithin(real, grant.real));
}

/**
 * Landlock's rules only add: what a directory allows, all below it allows.
 *
 * @throws FenceUnavailable for a read-only grant inside a writable one.
 */
export function refuseReadOnlyInWritable(grants: readonly Grant[]): void {
  for (const inner of grants) {
    if (inner.writable) continue;
    const outer = grants.find((grant) => grant.writable && isBelow(inner.real, grant.real));
    if (outer === undefined || grants.some((grant) => grant.writable && grant.real === inner.real)) continue;
    throw new FenceUnavailable(
      'filesystem',
      'NESTED_READ_ONLY_GRANT',
      `without a mount namespace ${inner.field} (${inner.given}) cannot be kept read-only inside ${outer.field} (${outer.given}); grant directories beside it instead`,
    );
  }
}
