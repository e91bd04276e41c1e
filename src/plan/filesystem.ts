import { dirname } from 'node:path';

import type { BaseView } from './base-view.js';
import type { Grant } from './grants.js';
import { isBelow, isWithin, isWithinAny } from './paths.js';
import type { Mount } from './plan.js';
import type { RuntimeFiles } from './runtime-files.js';
import type { Scratch } from './scratch.js';

type IdMap = 'none' | 'required' | 'optional';

export interface ViewParts {
  base: BaseView;
  grants: readonly Grant[];
  runtime: RuntimeFiles;
  scratch: Scratch;
  /** Made-up files of /etc. */
  files: readonly Mount[];
  /** How the guest comes to own what is granted for writing; `none` when it is the host's own account. */
  writableIdMap: IdMap;
}

interface Bind {
  path: string;
  writable: boolean;
  idMap: IdMap;
  owner: string;
}

/** The launcher's own bound. */
export const MAX_MOUNTS = 256;

/**
 * Puts the parts of the guest's view together, each path once, parents before what lies below them. A grant wins over the
 * runtime's files, these over the base view, and everything over scratch.
 *
 * @throws RangeError when there are more mounts than a launch can have.
 */
export function layFilesystem(parts: ViewParts): Mount[] {
  const { base, scratch } = parts;
  const grants = keepGrants(parts);
  const runtime = keepRuntime(parts, grants);
  const binds = [...grants, ...runtime];
  const places = [...base.binds, ...binds.map(({ path }) => path)];
  const links = keepLinks(parts, places);
  const taken = [...grants.map(({ path }) => path), ...links.keys()];
  const mounts: Mount[] = [];
  for (const mount of base.mounts) {
    if (taken.length === 0 || !isWithinAny(mount.path, taken)) mounts.push(mount);
  }
  for (const mount of parts.files) {
    if (taken.length === 0 || !isWithinAny(mount.path, taken)) mounts.push(mount);
  }
  for (const { path, mode } of scratch.directories) mounts.push({ kind: 'scratch', path, mode });
  for (const { path, writable, idMap } of binds) {
    mounts.push({ kind: 'bind', path, source: path, writable, idMap, mayBeMissing: false });
  }
  for (const path of pinsOf(grants)) mounts.push({ kind: 'pin', path });
  for (const [path, target] of links) mounts.push({ kind: 'symlink', path, target });
  if (mounts.length > MAX_MOUNTS) {
    throw new RangeError(`filesystem must name fewer paths: this run needs ${mounts.length} mounts, a sandbox can have ${MAX_MOUNTS}`);
  }
  // A path sorts before whatever lies below it.
  return mounts.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Of nested grants the innermost counts for what lies below it. One that would change nothing is left out, so that a
 * caller can name the same tree many times over.
 */
function keepGrants(parts: ViewParts): Bind[] {
  const byPath = new Map<string, Bind>();
  for (const grant of parts.grants) {
    // The root directory can only be a read-only cwd: the sandbox's own.
    if (grant.real === '/') continue;
    const known = byPath.get(grant.real);
    if (known === undefined || (grant.writable && !known.writable)) byPath.set(grant.real, asBind(grant, parts.writableIdMap));
  }
  const kept: Bind[] = [];
  for (const bind of [...byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const around = nearestAround(bind, kept) ?? baseAround(bind, parts.base);
    if (around === null || around.writable !== bind.writable || !mapsAlike(around, bind)) kept.push(bind);
  }
  return kept;
}

/**
 * The directories between a writable grant and a read-only one inside it. A mount point cannot be renamed, but what is
 * above it could be, and the guest would put something of its own in its place.
 */
function pinsOf(grants: readonly Bind[]): Set<string> {
  const pins = new Set<string>();
  for (const bind of grants) {
    const around = nearestAround(bind, grants.filter((other) => other !== bind));
    if (bind.writable || around === null || !around.writable) continue;
    for (let path = dirname(bind.path); path !== around.path; path = dirname(path)) pins.add(path);
  }
  return pins;
}

function asBind(grant: Grant, writableIdMap: IdMap): Bind {
  const idMap = writableIdMap === 'required' && !grant.writable ? 'optional' : writableIdMap;
  return { path: grant.real, writable: grant.writable, idMap, owner: `${grant.uid}:${grant.gid}` };
}

function nearestAround(bind: Bind, candidates: readonly Bind[]): Bind | null {
  let nearest: Bind | null = null;
  for (const candidate of candidates) {
    if (!isWithin(bind.path, candidate.path)) continue;
    if (nearest === null || candidate.path.length > nearest.path.length) nearest = candidate;
  }
  return nearest;
}

function baseAround(bind: Bind, base: BaseView): Bind | null {
  return isWithinAny(bind.path, base.binds) ? { path: bind.path, writable: false, idMap: 'none', owner: '' } : null;
}

function mapsAlike(a: Bind, b: Bind): boolean {
  return (a.idMap === 'none') === (b.idMap === 'none') && (a.idMap === 'none' || a.owner === b.owner);
}

/** The runtime's files that no grant shows. A directory that is not open to others is shown to the guest as its owner. */
function keepRuntime(parts: ViewParts, grants: readonly Bind[]): Bind[] {
  const kept: Bind[] = [];
  const sorted = [...parts.runtime.binds.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  for (const { path, mode } of sorted) {
    if (grants.some((grant) => isWithin(path, grant.path))) continue;
    const idMap = parts.writableIdMap === 'none' || (mode & 0o5) === 0o5 ? 'none' : 'optional';
    const around = kept.find((bind) => isWithin(path, bind.path));
    if (around === undefined || (idMap !== 'none' && around.idMap === 'none')) kept.push({ path, writable: false, idMap, owner: '' });
  }
  return kept;
}

/** The names by which callers and runtimes know what is bound at its real path, except those that exist there already. */
function keepLinks(parts: ViewParts, places: readonly string[]): Map<string, string> {
  const wanted = new Map<string, string>([...parts.runtime.links, ...parts.scratch.links]);
  for (const { given, real } of parts.grants) {
    if (given !== real && real !== '/') wanted.set(given, real);
  }
  const kept = new Map<string, string>();
  for (const path of [...wanted.keys()].sort()) {
    const target = wanted.get(path);
    if (target === undefined || isWithinAny(path, places)) continue;
    if (isWithinAny(path, kept.keys())) continue;
    if ([...parts.base.links.keys()].some((link) => isBelow(path, link) || path === link)) continue;
    kept.set(path, target);
  }
  return kept;
}
