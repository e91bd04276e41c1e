import { accessSync, closeSync, constants, openSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';

/** Deno's program: DENO_BIN, the first in PATH, or that of an installed npm package; else the bare name, which a run may not find. */
export function findDeno(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const given = env['DENO_BIN'];
  if (given !== undefined && given !== '') return given.includes('/') ? resolve(given) : given;
  const directories = (env['PATH'] ?? '').split(':').filter((directory) => directory.startsWith('/'));
  return [...directories.map((directory) => join(directory, 'deno')), ...packaged()].find(isProgram) ?? 'deno';
}

/** The package `deno` is a script that starts the program of a package by platform. */
function packaged(): string[] {
  try {
    const platform = `@deno/linux-${process.arch}-glibc/package.json`;
    const deno = createRequire(import.meta.url).resolve('deno/package.json');
    return [join(dirname(createRequire(deno).resolve(platform)), 'deno')];
  } catch {
    return [];
  }
}

/** Not a script: the npm package puts one into node_modules/.bin that starts Node first, at each run. */
function isProgram(path: string): boolean {
  let descriptor: number | null = null;
  try {
    accessSync(path, constants.X_OK);
    descriptor = openSync(path, constants.O_RDONLY);
    const magic = Buffer.alloc(4);
    return readSync(descriptor, magic) === magic.length && magic.toString('latin1') === '\x7fELF';
  } catch {
    return false;
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}
