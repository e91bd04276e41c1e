import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Profile } from '../../src/seccomp/profile.js';
import { COMPARISONS } from '../../src/seccomp/condition.js';
import { decodeProgram } from '../../src/seccomp/program.js';
import type { Instruction } from '../../src/seccomp/program.js';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const FIXTURES = join(ROOT, 'test/fixtures/seccomp');
export const POLICY = join(ROOT, 'native/seccomp/default.json');

const BUILT = join(ROOT, 'build/seccomp/test');
const WARNINGS = ['-O1', '-Wall', '-Wextra', '-Werror'];

/** What a test needs and this host lacks: a reason to skip it, or a failure where nothing may be skipped. */
export function missing(reason: string | false): boolean {
  if (reason === false) return false;
  if (process.env.RINGFENCE_MUST_RUN === '1') throw new Error(`must run, but ${reason}`);
  process.stderr.write(`skipped: ${reason}\n`);
  return true;
}

/** Runs a command under a filter and nothing else; see the source's first lines. */
export function buildLoader(): string {
  return build('c++', ['-std=c++17', '-static'], join(FIXTURES, 'loader.cc'), []);
}

/** Makes single calls and tells their errno. */
export function buildProber(): string {
  return build('cc', ['-std=c11', '-static'], join(FIXTURES, 'prober.c'), []);
}

/** libseccomp's own compiler. */
export function buildOracle(): string {
  return build('cc', ['-std=c11', '-D_GNU_SOURCE'], join(ROOT, 'native/seccomp/compile.c'), ['-lseccomp']);
}

export const noLibseccomp = existsSync('/usr/include/seccomp.h') ? false : 'libseccomp-dev is not installed';

function build(compiler: string, flags: string[], source: string, libraries: string[]): string {
  mkdirSync(BUILT, { recursive: true });
  const output = join(BUILT, basename(source, extname(source)));
  const unfinished = `${output}.${process.pid}`; // test files run side by side
  execFileSync(compiler, [...WARNINGS, ...flags, '-o', unfinished, source, ...libraries], { stdio: ['ignore', 'inherit', 'inherit'] });
  renameSync(unfinished, output);
  return output;
}

/** Those that the headers have; a test compares. */
export const VARIANTS = ['kDefaultFilter', 'kNoInetFilter', 'kNoNamespacesFilter', 'kNoNamespacesInetFilter'] as const;
export type Variant = (typeof VARIANTS)[number];

/** A program as the launcher gets it, read back from the committed header. */
export function committedProgram(architecture: 'x64' | 'arm64', variant: Variant): Instruction[] {
  const text = readFileSync(join(ROOT, `native/seccomp/generated/${architecture}.h`), 'utf8');
  const body = text.slice(text.indexOf(`${variant}[]`)).split('};')[0] ?? '';
  return [...body.matchAll(/\{(\w+), (\w+), (\w+), (\w+)\}/g)].map(([, code, jt, jf, k]) => ({
    code: Number(code),
    jt: Number(jt),
    jf: Number(jf),
    k: Number(k),
  }));
}

/** What libseccomp makes of a profile; throws with its message where it refuses one. */
export function compileWithLibseccomp(oracle: string, { defaultAction, rules }: Profile, architecture: 'x64' | 'arm64'): Instruction[] {
  const lines = rules
    .filter(({ action }) => action !== defaultAction)
    .flatMap(({ names, action, conditions }) =>
      names.map((name) => `rule ${action} ${name} ${conditions.length}${conditions.map((c) => ` ${c.index} ${COMPARISONS[c.comparison]} ${c.value} ${c.valueTwo}`).join('')}`),
    );
  const input = [`default ${defaultAction}`, ...lines, ''].join('\n');
  return decodeProgram(execFileSync(oracle, ['program', architecture], { input }));
}

/** The real executable behind the npm package `deno`. */
export function findDeno(): string {
  const scope = join(ROOT, 'node_modules/@deno');
  const binary = readdirSync(scope).map((name) => join(scope, name, 'deno')).find((path) => existsSync(path));
  if (binary === undefined) throw new Error('the npm package deno has no executable for this machine');
  return binary;
}
