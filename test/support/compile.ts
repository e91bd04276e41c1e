import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const fixtures = fileURLToPath(new URL('../fixtures', import.meta.url));
// Below build/, so that it is compiled once for all lanes, which get a copy of it.
const cache = fileURLToPath(new URL('../../build/fixtures', import.meta.url));

export interface CompileOptions {
  /** More compiler flags, for example `-pthread`. */
  flags?: string[];
}

/**
 * Compiles `test/fixtures/<source>` (C or C++) and gives back the executable's path. It is static: it runs in a sandbox
 * that holds nothing else. Grant its path or directory to the guest; the result is cached by content and flags.
 */
export function compileFixture(source: string, { flags = [] }: CompileOptions = {}): string {
  const file = path.join(fixtures, source);
  const all = ['-O1', '-Wall', '-Wextra', '-Werror', '-static', ...flags];
  const key = createHash('sha256').update(JSON.stringify(all)).update(readFileSync(file)).digest('hex').slice(0, 16);
  const executable = path.join(cache, `${path.parse(source).name}-${key}`);
  if (existsSync(executable)) return executable;
  mkdirSync(cache, { recursive: true });
  // Two workers may compile the same fixture: each writes its own file, the last rename wins.
  const unfinished = `${executable}.${process.pid}`;
  const compiler = source.endsWith('.c') ? 'cc' : 'c++';
  execFileSync(compiler, [...all, '-o', unfinished, file], { stdio: ['ignore', 'inherit', 'inherit'] });
  renameSync(unfinished, executable);
  return executable;
}
