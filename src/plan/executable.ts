import { closeSync, constants, lstatSync, openSync, readSync, readlinkSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { access, open, stat } from 'node:fs/promises';
import { posix } from 'node:path';

import type { BaseView } from './base-view.js';
import { CommandNotFound } from './errors.js';
import { nameOf, parentOf } from './paths.js';
import { isKernelTree, realPathOf } from './real-path.js';

/** A file that can be executed. */
export interface Executable {
  /** Where it was found: absolute, normalised, perhaps through symlinks. */
  path: string;
  /** The same with its directory's symlinks resolved, but not its own. */
  entry: string;
  /** Without any symlink. */
  real: string;
  /** Of the file itself. */
  mode: number;
  /** Its first bytes, as much as the kernel looks at; empty when this account cannot read it. */
  head: string;
}

/** `unreachable`: this account may not even look. */
type Failure = 'ENOENT' | 'EACCES' | 'unreachable';

/** BINPRM_BUF_SIZE: the kernel takes the `#!` line from these bytes. */
const HEAD_BYTES = 256;
/** confstr(_CS_PATH), what execvp uses without a PATH. */
const DEFAULT_PATH = '/bin:/usr/bin';

/**
 * Finds a command as execvp would: an absolute path, or a name in the absolute directories of a PATH.
 *
 * @throws CommandNotFound with EACCES when only things that cannot be executed were found, else with ENOENT. A directory of
 *   PATH that this account may not search has nothing in it.
 */
export async function findExecutable(command: string, searchPath: string | undefined, base: BaseView): Promise<Executable> {
  if (command.startsWith('/')) {
    const found = await inspect(command, base);
    if (typeof found === 'string') throw new CommandNotFound(command, found === 'ENOENT' ? 'ENOENT' : 'EACCES');
    return found;
  }
  let failure: 'ENOENT' | 'EACCES' = 'ENOENT';
  for (const directory of command === '' ? [] : (searchPath ?? DEFAULT_PATH).split(':')) {
    // An empty or relative entry would mean the guest's working directory: the guest's files must not choose the command.
    if (!directory.startsWith('/')) continue;
    const found = await inspect(directory === '/' ? `/${command}` : `${directory}/${command}`, base);
    if (typeof found !== 'string') return found;
    if (found === 'EACCES') failure = 'EACCES';
  }
  throw new CommandNotFound(command, failure);
}

async function inspect(path: string, base: BaseView): Promise<Executable | Failure> {
  const fast = inspectInBaseView(path, base);
  if (fast !== null) return fast;
  try {
    const info = await stat(path);
    if (!(await isExecutable(path, info))) return 'EACCES';
    const [real, directory] = await Promise.all([realPathOf(path), realPathOf(parentOf(path))]);
    const shm = real.startsWith('/dev/shm/');
    if (isKernelTree(real) && !shm) return 'EACCES';
    const entry = posix.join(directory, nameOf(path));
    // "/a/link/../b" is not "/a/b"; and a path of the host's /proc or /dev means something else in the guest's.
    const spelling = path.includes('/../') ? entry : posix.normalize(path);
    const usable = isKernelTree(spelling) && !shm ? real : spelling;
    return { path: usable, entry: usable === real ? real : entry, real, mode: info.mode, head: await readHead(real) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return code === 'EACCES' || code === 'EPERM' ? 'unreachable' : 'ENOENT';
  }
}

/**
 * A file directly in one of the system's command directories, or one link away in another of them: a few quick calls on a
 * local disk, where four trips through the thread pool would take longer than the launch itself. Null when it is anything
 * else.
 */
function inspectInBaseView(path: string, base: BaseView): Executable | Failure | null {
  const directory = base.commandDirectories.get(parentOf(path));
  const name = nameOf(path);
  if (directory === undefined || name === '' || name === '.' || name === '..') return null;
  try {
    const entry = `${directory}/${name}`;
    let info = lstatSync(entry, { throwIfNoEntry: false });
    if (info === undefined) return 'ENOENT';
    let real = entry;
    if (info.isSymbolicLink()) {
      const target = posix.resolve(directory, readlinkSync(entry));
      const targetDirectory = base.commandDirectories.get(parentOf(target));
      if (targetDirectory === undefined) return null;
      real = `${targetDirectory}/${nameOf(target)}`;
      info = lstatSync(real, { throwIfNoEntry: false });
    }
    if (info?.isFile() !== true || (info.mode & 0o111) === 0) return null;
    return { path, entry, real, mode: info.mode, head: readHeadSync(real) };
  } catch {
    // A name too long, a directory that just went: the other way finds the right words for it.
    return null;
  }
}

async function isExecutable(path: string, info: Stats): Promise<boolean> {
  if (!info.isFile() || (info.mode & 0o111) === 0) return false;
  return access(path, constants.X_OK).then(() => true, () => false);
}

// O_NONBLOCK: should the file become a FIFO meanwhile, the open does not wait for a writer.
const HEAD_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

function readHeadSync(path: string): string {
  let descriptor: number;
  try {
    descriptor = openSync(path, HEAD_FLAGS);
  } catch {
    return '';
  }
  try {
    const bytes = Buffer.allocUnsafe(HEAD_BYTES);
    return asHead(bytes, readSync(descriptor, bytes, 0, HEAD_BYTES, 0));
  } finally {
    closeSync(descriptor);
  }
}

async function readHead(path: string): Promise<string> {
  const file = await open(path, HEAD_FLAGS).catch(() => null);
  if (file === null) return '';
  try {
    const bytes = Buffer.allocUnsafe(HEAD_BYTES);
    const { bytesRead } = await file.read(bytes, 0, HEAD_BYTES, 0);
    return asHead(bytes, bytesRead);
  } finally {
    await file.close();
  }
}

function asHead(bytes: Buffer, length: number): string {
  return length > 2 && bytes[0] === 0x23 && bytes[1] === 0x21 ? bytes.toString('utf8', 0, length) : '';
}
