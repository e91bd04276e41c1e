import { statSync } from 'node:fs';
import { normalize, resolve } from 'node:path';

import { UsageError } from './usage-error.js';

/** The directory that this process is in, by the name that the shell has for it, which may lead through links, and by its real one. */
export interface CurrentDirectory {
  name: string;
  real: string;
}

/** @throws UsageError when it is gone. */
export function currentDirectory(pwd: string | undefined): CurrentDirectory {
  const real = realDirectory();
  return { name: pwd?.startsWith('/') === true && isHere(pwd) ? resolve(pwd) : real, real };
}

/** The absolute path that is meant by what was typed. What climbs out does so from the real directory, as in any other command. */
export function pathFrom({ name, real }: CurrentDirectory, path: string): string {
  return resolve(/^\.\.(\/|$)/.test(normalize(path)) ? real : name, path);
}

function realDirectory(): string {
  try {
    return process.cwd();
  } catch (error) {
    throw new UsageError(`the current directory cannot be used (${(error as NodeJS.ErrnoException).code ?? String(error)}): change into another one`);
  }
}

/** PWD is only a variable: it may be left over from another directory. */
function isHere(pwd: string): boolean {
  try {
    const [named, here] = [resolve(pwd), '.'].map((path) => statSync(path, { bigint: true }));
    return named?.dev === here?.dev && named?.ino === here?.ino;
  } catch {
    return false;
  }
}
