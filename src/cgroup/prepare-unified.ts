import { access, constants, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

import type { Controller } from '../plan/plan.js';
import type { CgroupPlacement, CgroupProblem, CgroupSite } from './placement.js';
import { codeOf, probeChild } from './probe-child.js';
import { busy, controllersMissing, notContained, notDelegated, readOnly, unexpected } from './remedies.js';
import type { HostProcess } from './run-name.js';
import { HOST_LEAF } from './run-name.js';

const REQUIRED: readonly Controller[] = ['memory', 'pids'];
const OPTIONAL: readonly Controller[] = ['cpu'];
const CONTROL_FILES: Record<string, string[]> = { memory: ['memory.max'], pids: ['pids.max'], cpu: ['cpu.max'] };

/** v2: hands memory and pids (and cpu) down to the children of the parent, and sees that a child has them. */
export async function prepareUnified(site: CgroupSite, host: HostProcess, uid: number): Promise<CgroupPlacement | CgroupProblem> {
  const found = site.parents[0]?.directory ?? site.mountPoint;
  // A host that was moved by an earlier start, or by the process that started it, has its runs beside the leaf.
  const inLeaf = !site.overridden && basename(found) === HOST_LEAF && found !== site.mountPoint;
  const parent = inLeaf ? dirname(found) : found;
  try {
    const available = await readWords(join(parent, 'cgroup.controllers'));
    const missing = REQUIRED.filter((name) => !available.includes(name));
    if (missing.length > 0) return controllersMissing(parent, missing, uid);
    const refusal = await enable(parent, REQUIRED, host, site.ownDirectory === parent);
    if (refusal !== null) return explain(refusal, parent, site, uid);
    for (const name of OPTIONAL.filter((each) => available.includes(each))) await enable(parent, [name], host, false);
    const enabled = await readWords(join(parent, 'cgroup.subtree_control'));
    const controllers = [...REQUIRED, ...OPTIONAL].filter((name) => enabled.includes(name));
    const absent = REQUIRED.filter((name) => !controllers.includes(name));
    if (absent.length > 0) return controllersMissing(parent, absent, uid);
    return await verify(parent, controllers, site, host, uid);
  } catch (error) {
    return explain(codeOf(error), parent, site, uid);
  }
}

async function verify(parent: string, controllers: Controller[], site: CgroupSite, host: HostProcess, uid: number) {
  const files = ['cgroup.procs', ...controllers.flatMap((name) => CONTROL_FILES[name] ?? [])];
  const failure = await probeChild(parent, files, host);
  if (failure !== null) return explain(failure, parent, site, uid);
  if (site.ownDirectory !== null) {
    const ancestor = commonAncestor(site.ownDirectory, parent);
    const writable = await access(join(ancestor, 'cgroup.procs'), constants.W_OK).then(() => true, () => false);
    if (!writable) return notContained(ancestor, uid);
  }
  return { kind: 'ready', version: 2, parents: [{ controllers, directory: parent }], controllers } satisfies CgroupPlacement;
}

/** @returns the errno's name of what the kernel refused, or null. */
async function enable(parent: string, wanted: readonly Controller[], host: HostProcess, hostIsInside: boolean): Promise<string | null> {
  const file = join(parent, 'cgroup.subtree_control');
  const absent = await readWords(file).then((enabled) => wanted.filter((name) => !enabled.includes(name)));
  if (absent.length === 0) return null;
  const command = absent.map((name) => `+${name}`).join(' ');
  const refusal = await write(file, command);
  // The no-internal-process rule of cgroup v2: a cgroup with processes cannot hand controllers down.
  if (refusal !== 'EBUSY' || !hostIsInside) return refusal;
  return enableFromLeaf(parent, file, command, host);
}

async function enableFromLeaf(parent: string, file: string, command: string, host: HostProcess): Promise<string | null> {
  const leaf = join(parent, HOST_LEAF);
  await mkdir(leaf).catch(ignore('EEXIST'));
  const moved = await write(join(leaf, 'cgroup.procs'), String(host.pid));
  const refusal = moved ?? (await write(file, command));
  if (refusal === null) return null;
  if (moved === null) await write(join(parent, 'cgroup.procs'), String(host.pid));
  // EBUSY: another host lives in the leaf.
  await rmdir(leaf).catch(ignore('EBUSY'));
  return refusal;
}

function explain(code: string, parent: string, site: CgroupSite, uid: number): CgroupProblem {
  if (code === 'EBUSY') return busy(parent, parent === site.mountPoint);
  if (code === 'EACCES' || code === 'EPERM') return notDelegated(parent, uid);
  if (code === 'EROFS') return readOnly([site.mountPoint]);
  return unexpected(`divide the cgroup ${parent}`, { code });
}

async function readWords(file: string): Promise<string[]> {
  return (await readFile(file, 'utf8')).split(/\s+/).filter((word) => word !== '');
}

async function write(file: string, content: string): Promise<string | null> {
  return writeFile(file, content).then(() => null, codeOf);
}

function ignore(expected: string) {
  return (error: unknown): void => {
    if (codeOf(error) !== expected) throw error;
  };
}

function commonAncestor(a: string, b: string): string {
  const left = a.split('/');
  const right = b.split('/');
  let same = 0;
  while (same < left.length && left[same] === right[same]) same++;
  return left.slice(0, same).join('/') || '/';
}
