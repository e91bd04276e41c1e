import { readFile, stat } from 'node:fs/promises';
import { release } from 'node:os';
import { permits } from './actions.js';
import { compileProfile } from './compile.js';
import type { Compiled } from './compile.js';
import { CALLS } from './generated/calls.js';
import { AUDIT_ARCH } from './guard.js';
import { parseProfile } from './profile.js';
import { ProfileError } from './profile-error.js';
import type { Architecture, Target } from './profile.js';
import { encodeProgram } from './program.js';
import { simulate } from './simulate.js';

/** What the launcher itself does between installing the filter and the guest's first instruction. */
const LAUNCHER_CALLS: readonly { name: string; args: readonly bigint[] }[] = [
  { name: 'prctl', args: [21n] }, // PR_GET_SECCOMP: reading the filter back
  { name: 'execve', args: [] },
  { name: 'exit_group', args: [] }, // after an execve that failed
];

/**
 * Compiles a caller's own profile for this machine.
 *
 * @throws ProfileError
 */
export async function loadProfile(path: string, target: Target = thisMachine()): Promise<Compiled> {
  try {
    const compiled = compileProfile(parseProfile(await readFile(path, 'utf8'), target), target.architecture);
    mustLetLauncherFinish(compiled, target.architecture);
    return compiled;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ProfileError(`seccomp.profile ${path}: ${reason}`, { cause });
  }
}

/** The profiles of one host: compiling one takes milliseconds, and most runs have the same. */
export class Profiles {
  readonly #known = new Map<string, { stamp: string; program: Promise<Uint8Array> }>();

  /** The program of the profile as the file is now. @throws as `loadProfile`. */
  async programOf(path: string): Promise<Uint8Array> {
    const stamp = await stat(path).then(({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`, () => 'unreadable');
    const known = this.#known.get(path);
    if (known?.stamp === stamp) return known.program;
    const program = loadProfile(path).then((compiled) => encodeProgram(compiled.program));
    this.#known.set(path, { stamp, program });
    program.catch(() => this.#known.delete(path));
    return program;
  }
}

function thisMachine(): Target {
  if (process.arch !== 'x64' && process.arch !== 'arm64') throw new TypeError(`no system-call filter for ${process.arch}`);
  return { architecture: process.arch, kernel: release() };
}

function mustLetLauncherFinish({ program }: Compiled, architecture: Architecture): void {
  for (const { name, args } of LAUNCHER_CALLS) {
    const number = CALLS[architecture].get(name);
    if (number === undefined || !permits(simulate(program, { architecture: AUDIT_ARCH[architecture], number, args })))
      throw new TypeError(`must allow ${name}: the launcher starts the guest under this filter`);
  }
}
