import { statSync } from 'node:fs';
import { posix } from 'node:path';

import type { Controller } from '../plan/plan.js';
import type { CgroupMount, Membership } from './membership.js';
import { directoryOf, parseCgroupMounts, parseMemberships } from './membership.js';
import type { CgroupProblem, CgroupSite, LocatedParent } from './placement.js';
import { controllerSwitchedOff, notMounted, overrideInvalid, readOnly, splitHierarchies, unreachable } from './remedies.js';

/** What the answer depends on, as text, so that other machines' files can be tried. */
export interface CgroupSources {
  /** /proc/self/cgroup */
  memberships: string;
  /** /proc/self/mountinfo */
  mountinfo: string;
  /** RINGFENCE_CGROUP */
  override: string | undefined;
  isDirectory(path: string): boolean;
}

const LEGACY_CONTROLLERS: readonly Controller[] = ['memory', 'pids', 'cpu', 'cpuacct'];
const REQUIRED: readonly Controller[] = ['memory', 'pids'];

/** Finds the cgroups below which runs are to be put: the host's own, or those that RINGFENCE_CGROUP names. Changes nothing. */
export function locateCgroup(sources: CgroupSources): CgroupSite | CgroupProblem {
  const memberships = parseMemberships(sources.memberships);
  const mounts = parseCgroupMounts(sources.mountinfo);
  if (mounts.length === 0) return notMounted();
  const onLegacy = REQUIRED.filter((name) => memberships.some(({ controllers }) => controllers.includes(name)));
  const override = sources.override === undefined || sources.override === '' ? null : sources.override;
  if (onLegacy.length === REQUIRED.length) return locateLegacy(memberships, mounts, override, sources);
  if (onLegacy.length > 0) {
    const absent = REQUIRED.filter((name) => !onLegacy.includes(name));
    return mounts.some(({ version }) => version === 2) ? splitHierarchies() : controllerSwitchedOff(absent);
  }
  return locateUnified(memberships, mounts, override, sources);
}

function locateUnified(
  memberships: Membership[],
  mounts: CgroupMount[],
  override: string | null,
  sources: CgroupSources,
): CgroupSite | CgroupProblem {
  const own = memberships.find(({ controllers }) => controllers.length === 0);
  const candidates = mounts.filter(({ version }) => version === 2);
  if (own === undefined || candidates.length === 0) return controllerSwitchedOff(REQUIRED);
  const seen = best(candidates, own.path);
  const ownDirectory = seen?.directory ?? null;
  if (override === null) {
    if (seen === null) return unreachable(own.path);
    if (seen.mount.readOnly) return readOnly([seen.mount.mountPoint]);
    return site(2, [{ controllers: [], directory: seen.directory, mountPoint: seen.mount.mountPoint }], ownDirectory, seen.mount.mountPoint, false);
  }
  const mount = seen?.mount ?? candidates[0];
  if (mount === undefined) return notMounted();
  const path = relativeOverride(override, candidates);
  if (path === null) return overrideInvalid(override, 'climbs out of the hierarchy');
  const directory = posix.join(mount.mountPoint, path);
  if (!sources.isDirectory(directory)) return overrideInvalid(override, `is not a cgroup: there is no directory ${directory}`);
  if (mount.readOnly) return readOnly([mount.mountPoint]);
  return site(2, [{ controllers: [], directory, mountPoint: mount.mountPoint }], ownDirectory, mount.mountPoint, true);
}

function locateLegacy(
  memberships: Membership[],
  mounts: CgroupMount[],
  override: string | null,
  sources: CgroupSources,
): CgroupSite | CgroupProblem {
  const legacy = mounts.filter(({ version }) => version === 1);
  const path = override === null ? null : relativeOverride(override, legacy);
  if (override !== null && path === null) return overrideInvalid(override, 'climbs out of the hierarchy');
  const parents: LocatedParent[] = [];
  const readOnlyMounts: string[] = [];
  let refused = false;
  let overridden = false;
  let mountPoint = '';
  for (const membership of memberships) {
    const controllers = LEGACY_CONTROLLERS.filter((name) => membership.controllers.includes(name));
    if (controllers.length === 0) continue;
    const required = controllers.some((name) => REQUIRED.includes(name));
    const hierarchy = legacy.filter((mount) => controllers.every((name) => mount.controllers.includes(name)));
    const found = legacyDirectory(hierarchy, membership, path, sources);
    if (found === null) {
      if (required) return hierarchy.length === 0 ? notMounted() : unreachable(membership.path);
      continue;
    }
    if (found.mount.readOnly) {
      readOnlyMounts.push(found.mount.mountPoint);
      refused ||= required;
      continue;
    }
    overridden ||= found.overridden;
    if (required) mountPoint = found.mount.mountPoint;
    parents.push({ controllers, directory: found.directory, mountPoint: found.mount.mountPoint });
  }
  if (refused) return readOnly(readOnlyMounts);
  if (override !== null && !overridden) return overrideInvalid(override, 'exists in no hierarchy');
  return site(1, parents, null, mountPoint, overridden);
}

function legacyDirectory(hierarchy: CgroupMount[], membership: Membership, path: string | null, sources: CgroupSources) {
  const seen = best(hierarchy, membership.path);
  const mount = seen?.mount ?? hierarchy[0];
  if (path !== null && mount !== undefined) {
    const directory = posix.join(mount.mountPoint, path);
    if (sources.isDirectory(directory)) return { mount, directory, overridden: true };
  }
  return seen === null ? null : { ...seen, overridden: false };
}

/** A hierarchy can be mounted several times: a writable mount is better than a read-only one, a later one covers an earlier one. */
function best(mounts: CgroupMount[], path: string): { mount: CgroupMount; directory: string } | null {
  let found: { mount: CgroupMount; directory: string } | null = null;
  for (const mount of mounts) {
    const directory = directoryOf(mount, path);
    if (directory === null) continue;
    if (found === null || found.mount.readOnly || !mount.readOnly) found = { mount, directory };
  }
  return found;
}

/** RINGFENCE_CGROUP below its mount point: given as a directory below one of the mounts, or as a path within the hierarchy. */
function relativeOverride(value: string, mounts: CgroupMount[]): string | null {
  if (value.split('/').includes('..') || value.includes('\0')) return null;
  const path = posix.normalize(`/${value}`);
  const below = mounts
    .map(({ mountPoint }) => mountPoint)
    .filter((mountPoint) => path === mountPoint || path.startsWith(`${mountPoint}/`))
    .sort((a, b) => b.length - a.length)[0];
  const relative = below === undefined ? path : path.slice(below.length);
  return relative.length > 1 && relative.endsWith('/') ? relative.slice(0, -1) : relative;
}

function site(version: 1 | 2, parents: LocatedParent[], ownDirectory: string | null, mountPoint: string, overridden: boolean): CgroupSite {
  return { kind: 'located', version, parents, ownDirectory, mountPoint, overridden };
}

export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Not there, or not to be seen by this account: either way no place for runs.
    return false;
  }
}
