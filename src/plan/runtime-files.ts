import { lstat } from 'node:fs/promises';

import type { BaseView } from './base-view.js';
import { isInBaseView } from './base-view.js';
import { CommandNotFound } from './errors.js';
import type { Executable } from './executable.js';
import { findExecutable } from './executable.js';
import { isWithin, isWithinAny, nameOf, parentOf } from './paths.js';
import { isKernelTree, realPathOf } from './real-path.js';
import { parseShebang } from './shebang.js';

/** A file or directory of the runtime outside the base view, bound read-only at its own path. */
export interface RuntimeBind {
  path: string;
  /** Mode of the file or directory itself. */
  mode: number;
}

export interface RuntimeFiles {
  binds: Map<string, RuntimeBind>;
  /** Symlinks to make, by path, with where they lead in the end. */
  links: Map<string, string>;
}

export interface RuntimeContext {
  base: BaseView;
  /** The PATH that the guest will have. */
  searchPath: string | undefined;
  /** Real paths that the guest sees anyway. */
  visible: readonly string[];
  /** Homes of the host's account: neither they nor anything above them is an install prefix. */
  homes: readonly string[];
  /** The guest's scratch directories: nothing of the host is bound over them. */
  scratch: readonly string[];
}

/** Interpreters of interpreters: the kernel follows five, and nobody writes more than two. */
const MAX_DEPTH = 4;

/** What an install prefix may show. Not `share` or `etc`: ~/.local/share and the like hold secrets. */
const SOFTWARE = ['bin', 'lib', 'lib32', 'lib64', 'libexec', 'include', 'pyvenv.cfg'];

/** A home by its place, whoever owns it: `bin` and `lib` there are somebody's own directories, no install prefix. */
const HOME_SHAPED = /^\/(?:root|home\/[^/]+)$/;

/** Everything a command needs to start that the guest would not see otherwise: itself, its install prefix, its interpreters. */
export async function findRuntimeFiles(command: Executable, context: RuntimeContext): Promise<RuntimeFiles> {
  const files: RuntimeFiles = { binds: new Map(), links: new Map() };
  let queue = [command];
  for (let depth = 0; depth < MAX_DEPTH && queue.length > 0; depth++) {
    const interpreters: Executable[] = [];
    for (const executable of queue) {
      await addExecutable(executable, context, files);
      interpreters.push(...(await findInterpreters(executable, context, files)));
    }
    queue = interpreters;
  }
  return files;
}

/**
 * The interpreters that a script may have shown to the guest. Its `#!` line is the script's author's, who is not trusted: it
 * can name what the caller's PATH has and what comes with the command, and nothing else of the host.
 *
 * An interpreter that is missing is no error here: execve, or env, says so in the guest as it would on the host.
 */
async function findInterpreters(script: Executable, context: RuntimeContext, files: RuntimeFiles): Promise<Executable[]> {
  const shebang = parseShebang(script.head);
  if (shebang === null) return [];
  const names = shebang.command === null ? [shebang.interpreter] : [shebang.interpreter, shebang.command];
  const found: Executable[] = [];
  for (const name of names) {
    try {
      const interpreter = await findExecutable(name, context.searchPath, context.base);
      if (!name.startsWith('/') || isOfCaller(interpreter, context, files)) found.push(interpreter);
    } catch (error) {
      if (!(error instanceof CommandNotFound)) throw error;
    }
  }
  return found;
}

function isOfCaller({ path, entry }: Executable, { searchPath = '' }: RuntimeContext, { binds }: RuntimeFiles): boolean {
  return searchPath.split(':').includes(parentOf(path)) || isWithinAny(entry, [...binds.keys()]);
}

async function addExecutable(executable: Executable, context: RuntimeContext, files: RuntimeFiles): Promise<void> {
  const { path, entry, real, mode } = executable;
  if (!isVisible(real, context)) await addFor(real, mode, context, files);
  if (entry !== real && !isVisible(entry, context) && !(await addSurroundings(entry, context, files))) files.links.set(entry, real);
  if (path !== entry && !isVisible(path, context)) await addWayTo(path, entry, context, files);
}

async function addFor(real: string, mode: number, context: RuntimeContext, files: RuntimeFiles): Promise<void> {
  if (!(await addSurroundings(real, context, files))) files.binds.set(real, { path: real, mode });
}

/** Binds the tree that a file is a part of. False when it is a part of none. */
async function addSurroundings(path: string, context: RuntimeContext, files: RuntimeFiles): Promise<boolean> {
  const at = path.indexOf('/node_modules/');
  const modules = at < 0 ? null : path.slice(0, at + '/node_modules'.length);
  if (modules !== null && isClear(modules, context)) {
    const info = await lstat(modules);
    files.binds.set(modules, { path: modules, mode: info.mode });
    return true;
  }
  const directory = parentOf(path);
  const prefix = parentOf(directory);
  if (nameOf(directory) !== 'bin' || holdsHome(prefix, context) || !isClear(directory, context)) return false;
  await Promise.all(SOFTWARE.map((name) => addSoftware(`${prefix}/${name}`, context, files)));
  return true;
}

async function addSoftware(path: string, context: RuntimeContext, files: RuntimeFiles): Promise<void> {
  const info = await lstat(path).catch(() => null);
  if (info === null || isVisible(path, context) || !isClear(path, context)) return;
  if (info.isDirectory() || info.isFile()) {
    files.binds.set(path, { path, mode: info.mode });
    return;
  }
  if (!info.isSymbolicLink()) return;
  const real = await realPathOf(path).catch(() => null);
  if (real === null || isKernelTree(real)) return;
  // A link out of the prefix could lead to anything of the host: whoever made the prefix does not choose that.
  const beside = SOFTWARE.some((name) => isWithin(real, `${parentOf(path)}/${name}`));
  if (beside || isVisible(real, context)) files.links.set(path, real);
}

/**
 * Makes a path lead to the same file at its real place by one link, as high up as the install prefix: programs look for
 * their own files relative to the path they were started by.
 */
async function addWayTo(path: string, entry: string, context: RuntimeContext, files: RuntimeFiles): Promise<void> {
  let link = { from: path, to: entry };
  while (nameOf(link.from) === nameOf(link.to)) {
    const above = { from: parentOf(link.from), to: parentOf(link.to) };
    if (above.from === '/' || above.to === '/' || !isClear(above.from, context)) break;
    if ((await realPathOf(above.from).catch(() => null)) !== above.to) break;
    link = above;
  }
  files.links.set(link.from, link.to);
}

function isVisible(path: string, context: RuntimeContext): boolean {
  return isInBaseView(context.base, path) || isWithinAny(path, context.visible);
}

/** True when neither a home nor a scratch directory lies in the directory. */
function isClear(directory: string, context: RuntimeContext): boolean {
  return directory !== '/' && !context.scratch.some((kept) => isWithin(kept, directory)) && !holdsHome(directory, context);
}

function holdsHome(directory: string, context: RuntimeContext): boolean {
  return directory === '/' || HOME_SHAPED.test(directory) || context.homes.some((home) => isWithin(home, directory));
}
