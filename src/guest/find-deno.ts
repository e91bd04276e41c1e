import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Deno's program: DENO_BIN, the first in PATH, or that of an installed npm package; else the bare name, which a run will not find. */
export function findDeno(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const given = env['DENO_BIN'];
  if (given !== undefined && given !== '') return given;
  const directories = (env['PATH'] ?? '').split(':').filter((directory) => directory.startsWith('/'));
  return [...directories.map((directory) => join(directory, 'deno')), ...packaged()].find(isExecutable) ?? 'deno';
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

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
