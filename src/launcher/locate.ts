import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where the native files may be: what a checkout built, then what the package ships. */
export interface NativeSearch {
  /** The directory that holds package.json. */
  root: string;
  arch: string;
}

/** A native file that is not there or not usable. `hint` is ready to be typed. */
export class NativeFileError extends Error {
  readonly code = 'launcher-missing';
  readonly hint: string;

  constructor(message: string, hint: string, cause?: unknown) {
    super(`${message}; ${hint}`, cause === undefined ? undefined : { cause });
    this.name = 'NativeFileError';
    this.hint = hint;
  }
}

const thisPackage: NativeSearch = {
  root: fileURLToPath(new URL('../../', import.meta.url)),
  arch: process.arch,
};

/** Absolute path of the addon. Throws {@link NativeFileError}. */
export function locateAddon(search: NativeSearch = thisPackage): string {
  return locate('addon', 'ringfence.node', constants.R_OK, search);
}

/** Absolute path of the launcher executable. Throws {@link NativeFileError}. */
export function locateLauncher(search: NativeSearch = thisPackage): string {
  return locate('launcher', 'ringfence-launcher', constants.X_OK, search);
}

function locate(what: string, name: string, access: number, search: NativeSearch): string {
  const places = [join(search.root, 'build/Release', name), join(search.root, `prebuilds/linux-${search.arch}`, name)];
  for (const path of places) {
    const problem = accessProblem(path, access);
    if (problem === null) return path;
    if (problem !== 'ENOENT') throw new NativeFileError(`the ${what} ${path} cannot be used (${problem})`, remedy(path, problem));
  }
  throw new NativeFileError(
    `no ${what} for linux-${search.arch}: neither ${places.join(' nor ')} exists`,
    `in a checkout type "npm run build"; of the package only linux-x64 and linux-arm64 are built`,
  );
}

function accessProblem(path: string, access: number): string | null {
  try {
    accessSync(path, access);
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}

function remedy(path: string, problem: string): string {
  if (problem === 'EACCES') return `type "chmod 755 ${path}", and check that its file system is not mounted noexec`;
  return 'install the package again';
}
