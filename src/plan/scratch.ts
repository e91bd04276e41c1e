import { randomBytes } from 'node:crypto';
import { posix } from 'node:path';

import type { BaseView } from './base-view.js';
import type { Grant } from './grants.js';
import { refusal } from './grants.js';
import { isWithin } from './paths.js';
import { isKernelTree, realPathOf } from './real-path.js';

/** The writable directories of the run's own tmpfs. */
export interface Scratch {
  directories: { path: string; mode: number }[];
  /** HOME or TMPDIR under another name than the one it was granted by: link to make, with its target. */
  links: Map<string, string>;
  /** The sandbox's own working directory, null when the caller gave one. */
  ownedCwd: string | null;
}

export interface ScratchInput {
  base: BaseView;
  /** The guest's HOME and TMPDIR. */
  home: string | undefined;
  tmpdir: string | undefined;
  /** os.tmpdir() of the host, made absolute. */
  hostTmpdir: string;
  /** The caller's grants and its working directory. */
  grants: readonly Grant[];
  ownsCwd: boolean;
}

const SHARED = 0o1777;
const PRIVATE = 0o700;

/** @throws RangeError when an owned working directory has no place. */
export async function planScratch(input: ScratchInput): Promise<Scratch> {
  const modes = new Map<string, number>();
  const links = new Map<string, string>();
  const add = async (path: string | null, mode: number) => {
    if (path === null || modes.has(path)) return;
    const granted = await grantOver(path, input.grants);
    if (granted === null) modes.set(path, mode);
    else if (granted.link !== null) links.set(path, granted.link);
  };
  await add('/tmp', SHARED);
  await add('/dev/shm', SHARED);
  const hostTmpdir = await placeFor(input.hostTmpdir, input.base);
  await add(hostTmpdir, PRIVATE);
  await add(input.tmpdir === undefined ? null : await placeFor(input.tmpdir, input.base), PRIVATE);
  const home = input.home === undefined ? null : normalised(input.home);
  if (home !== null && isFree(home, input.base) && !isSystem(home, input.base)) await add(home, PRIVATE);
  const ownedCwd = input.ownsCwd ? await placeOwnedCwd(hostTmpdir, input) : null;
  if (ownedCwd !== null) modes.set(ownedCwd, PRIVATE);
  return { directories: [...modes].map(([path, mode]) => ({ path, mode })), links, ownedCwd };
}

async function placeOwnedCwd(place: string | null, input: ScratchInput): Promise<string> {
  const parent = place ?? normalised(input.hostTmpdir);
  const impossible = place === null && (parent === null || isKernelTree(parent) || isSystem(parent, input.base));
  if (parent === null || impossible) {
    throw refusal('cwd', 'absent', `must be given while os.tmpdir() is ${input.hostTmpdir}, where the sandbox can make none`);
  }
  for (const grant of input.grants) {
    if ((await grantOver(parent, [grant])) === null) continue;
    throw refusal(grant.field, grant.given, `must not contain os.tmpdir() (${parent}) unless cwd is given`);
  }
  return `${parent === '/' ? '' : parent}/ringfence-${randomBytes(6).toString('hex')}`;
}

/** The path itself, or, where it is a link of the system's read-only directories, what that leads to outside of them. */
async function placeFor(given: string, base: BaseView): Promise<string | null> {
  const path = normalised(given);
  if (path === null || !isFree(path, base)) return null;
  if (!isSystem(path, base)) return path;
  const real = await realPathOf(path).catch(() => null);
  return real !== null && isFree(real, base) && !isSystem(real, base) ? real : null;
}

/**
 * True inside what the base view shows of the host, as the home of a system account is: an empty directory would hide what is
 * there, and none can be made where there is nothing.
 */
function isSystem(path: string, base: BaseView): boolean {
  return base.mounts.some((mount) => isWithin(path, mount.path));
}

function normalised(path: string): string | null {
  return path.startsWith('/') ? posix.resolve(path) : null;
}

/** False for the root, for the kernel's trees, and for directories that hold a part of the base view. */
function isFree(path: string, base: BaseView): boolean {
  if (path === '/dev/shm' || path.startsWith('/dev/shm/')) return true;
  return !isKernelTree(path) && !base.mounts.some((mount) => isWithin(mount.path, path));
}

/** A grant that covers the path, by its own name or by its real one; `link` is where the name then has to lead. */
async function grantOver(path: string, grants: readonly Grant[]): Promise<{ link: string | null } | null> {
  if (grants.length === 0) return null;
  if (grants.some(({ given, real }) => isWithin(path, real) || isWithin(path, given))) return { link: null };
  const real = await realPathOf(path).catch(() => null);
  if (real === null || real === path) return null;
  return grants.some((grant) => isWithin(real, grant.real)) ? { link: real } : null;
}
