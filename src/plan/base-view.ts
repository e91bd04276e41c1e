import { lstat, readlink, realpath, stat } from 'node:fs/promises';
import { posix } from 'node:path';

import { isWithin, isWithinAny, parentOf } from './paths.js';
import type { Mount } from './plan.js';

/** What every guest sees of this host, read-only. Read once: the system's own directories do not change their shape. */
export interface BaseView {
  /** Sorted by path. */
  mounts: Mount[];
  /** Paths of the directories among them. */
  binds: string[];
  /** Links among them, by path, to where they lead in the end. */
  links: ReadonlyMap<string, string>;
  /** Directories for commands inside the view, by any name, with their real paths. */
  commandDirectories: ReadonlyMap<string, string>;
}

const SYSTEM_DIRECTORIES = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store'];

/** Dynamic linker, alternatives, certificates without keys, time zone; the /etc/pki ones are what Fedora's /etc/ssl points to. */
const CONFIGURATION = [
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/alternatives',
  '/etc/ssl/certs',
  '/etc/ssl/cert.pem',
  '/etc/ssl/openssl.cnf',
  '/etc/ca-certificates',
  '/etc/ca-certificates.conf',
  '/etc/pki/ca-trust/extracted',
  '/etc/pki/tls/certs',
  '/etc/pki/tls/cert.pem',
  '/etc/pki/tls/openssl.cnf',
  '/etc/localtime',
];

const DEVICES = [
  { name: 'null', minor: 3 },
  { name: 'zero', minor: 5 },
  { name: 'full', minor: 7 },
  { name: 'random', minor: 8 },
  { name: 'urandom', minor: 9 },
];

const DEVICE_LINKS: Mount[] = [
  { kind: 'symlink', path: '/dev/fd', target: '/proc/self/fd' },
  { kind: 'symlink', path: '/dev/stdin', target: '/proc/self/fd/0' },
  { kind: 'symlink', path: '/dev/stdout', target: '/proc/self/fd/1' },
  { kind: 'symlink', path: '/dev/stderr', target: '/proc/self/fd/2' },
];

const COMMAND_DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin', '/usr/games'];

/** One path of the host, as far as the base view is concerned. `real` is `path` itself unless it is, or lies behind, a link. */
export type HostEntry =
  | { kind: 'directory' | 'file'; path: string; real: string; target: null }
  | { kind: 'link'; path: string; real: string; target: string };

/** @param searchPath the host's PATH, whose directories inside the view are looked up fast later on */
export async function readBaseView(searchPath: string | undefined): Promise<BaseView> {
  const [system, configuration, devices] = await Promise.all([
    readEntries(SYSTEM_DIRECTORIES),
    readEntries(CONFIGURATION),
    readDevices(),
  ]);
  const view = layBaseView(system, configuration, devices);
  const candidates = new Set([...COMMAND_DIRECTORIES, ...(searchPath ?? '').split(':').filter((entry) => entry === posix.resolve(entry))]);
  const commandDirectories = new Map<string, string>();
  await Promise.all(
    [...candidates].map(async (directory) => {
      // Anything else in PATH may be a network mount that hangs: not touched here.
      if (!isWithinAny(directory, [...view.binds, ...view.links.keys()])) return;
      const real = await realpath(directory).catch(() => null);
      if (real !== null && isWithinAny(real, view.binds)) commandDirectories.set(directory, real);
    }),
  );
  return { ...view, commandDirectories };
}

/** Entries to mounts: a link stays a link where its end is in the view, else what it leads to is bound in its place. */
export function layBaseView(system: HostEntry[], configuration: HostEntry[], devices: Mount[]): Omit<BaseView, 'commandDirectories'> {
  const binds: string[] = [];
  const links = new Map<string, string>();
  const mounts: Mount[] = [...devices, ...DEVICE_LINKS];
  const bind = (path: string, source: string, mayBeMissing: boolean) => {
    mounts.push({ kind: 'bind', path, source, writable: false, idMap: 'none', mayBeMissing });
  };
  for (const entry of system) {
    if (entry.kind !== 'directory') continue;
    bind(entry.path, entry.real, false);
    binds.push(entry.path);
  }
  for (const entry of [...system, ...configuration]) {
    if (binds.includes(entry.path)) continue;
    if (entry.kind === 'link' && isWithinAny(entry.real, binds)) {
      // The host's own wording where it leads there in one step; a chain of links may pass through what is not in the view.
      const direct = posix.resolve(parentOf(entry.path), entry.target) === entry.real;
      mounts.push({ kind: 'symlink', path: entry.path, target: direct ? entry.target : entry.real });
      links.set(entry.path, entry.real);
    } else {
      bind(entry.path, entry.real, true);
      if (system.includes(entry)) binds.push(entry.path);
    }
  }
  mounts.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { mounts, binds, links };
}

async function readEntries(paths: string[]): Promise<HostEntry[]> {
  const entries = await Promise.all(paths.map(readEntry));
  return entries.filter((entry) => entry !== null);
}

async function readEntry(path: string): Promise<HostEntry | null> {
  try {
    const [own, end, real] = await Promise.all([lstat(path), stat(path), realpath(path)]);
    if (own.isSymbolicLink()) return { kind: 'link', path, real, target: await readlink(path) };
    // A directory of /etc that itself is a link could lead anywhere; what is bound is the end of it, at the expected path.
    if (end.isDirectory()) return { kind: 'directory', path, real, target: null };
    return end.isFile() ? { kind: 'file', path, real, target: null } : null;
  } catch (error) {
    // This host has no such thing, or this account may not see it.
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') return null;
    throw error;
  }
}

async function readDevices(): Promise<Mount[]> {
  const found = await Promise.all(
    DEVICES.map(async ({ name, minor }): Promise<Mount | null> => {
      const path = `/dev/${name}`;
      const info = await lstat(path).catch(() => null);
      return info?.isCharacterDevice() === true ? { kind: 'device', path, source: path, minor } : null;
    }),
  );
  return found.filter((mount) => mount !== null);
}

/** True for a path that the view itself provides, by whatever name. */
export function isInBaseView(view: Pick<BaseView, 'binds' | 'links'>, path: string): boolean {
  if (isWithinAny(path, view.binds)) return true;
  for (const link of view.links.keys()) {
    if (isWithin(path, link)) return true;
  }
  return false;
}
