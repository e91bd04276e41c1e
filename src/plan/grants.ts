import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { posix } from 'node:path';

import { shownPath } from './paths.js';
import { isKernelTree, realPathOf } from './real-path.js';

/** A path of the host that the caller opened to the guest, looked at. */
export interface Grant {
  /** The option it came from, for messages: `filesystem.read[0]`, `cwd`. */
  field: string;
  /** As the caller wrote it, normalised. */
  given: string;
  /** The same without symlinks: where it is bound. */
  real: string;
  writable: boolean;
  uid: number;
  gid: number;
}

export interface GrantOptions {
  cwd: string | null;
  cwdReadOnly: boolean;
  filesystem: { read: readonly string[]; write: readonly string[] };
}

/** PATH_MAX, with the NUL. */
const MAX_PATH_BYTES = 4096;

/**
 * Looks at every path that the caller names.
 *
 * @throws RangeError that names the first field that is wrong.
 */
export async function resolveGrants(options: GrantOptions): Promise<{ grants: Grant[]; cwd: Grant | null }> {
  const { read, write } = options.filesystem;
  const [grants, cwd] = await Promise.all([
    Promise.all([
      ...read.map((path, index) => resolveGrant(`filesystem.read[${index}]`, path, false)),
      ...write.map((path, index) => resolveGrant(`filesystem.write[${index}]`, path, true)),
    ]),
    options.cwd === null ? null : resolveCwd(options.cwd, !options.cwdReadOnly),
  ]);
  return { grants, cwd };
}

async function resolveGrant(field: string, path: string, writable: boolean): Promise<Grant> {
  const { grant, info } = await look(field, path, writable);
  if (grant.real === '/') throw refusal(field, path, 'must not be the root directory');
  if (info.isBlockDevice() || info.isCharacterDevice()) throw refusal(field, path, 'must not be a device');
  return grant;
}

async function resolveCwd(path: string, writable: boolean): Promise<Grant> {
  const { grant, info } = await look('cwd', path, writable);
  if (!info.isDirectory()) throw refusal('cwd', path, 'must be a directory');
  // Read-only, the root directory is the sandbox's own: it is there anyway, and nothing is bound.
  if (grant.real === '/' && writable) throw refusal('cwd', path, 'must not be the root directory unless it is read-only');
  return grant;
}

async function look(field: string, path: string, writable: boolean): Promise<{ grant: Grant; info: Stats }> {
  if (Buffer.byteLength(path) >= MAX_PATH_BYTES) throw refusal(field, path, `must be shorter than ${MAX_PATH_BYTES} bytes`);
  const given = withoutTrailingSlash(posix.normalize(path));
  refuseKernelTree(field, path, given);
  const [real, info] = await Promise.all([realPathOf(path), stat(path)]).catch((error: unknown) => {
    throw refusal(field, path, unresolved((error as NodeJS.ErrnoException).code));
  });
  refuseKernelTree(field, path, real);
  return { grant: { field, given, real, writable, uid: info.uid, gid: info.gid }, info };
}

function refuseKernelTree(field: string, path: string, resolved: string): void {
  if (isKernelTree(resolved)) throw refusal(field, path, 'must not lie in /proc, /sys or /dev');
}

function unresolved(code: string | undefined): string {
  if (code === 'ENOENT') return 'must exist';
  if (code === 'EACCES' || code === 'EPERM') return `must be accessible to this account: ${code}`;
  if (code === 'EILSEQ') return 'must not lead to a name that is not UTF-8';
  return `must be a path that can be resolved: ${code ?? 'unknown error'}`;
}

export function refusal(field: string, path: string, expected: string): RangeError {
  return new RangeError(`${field} (${shownPath(path)}) ${expected}`);
}

export function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
