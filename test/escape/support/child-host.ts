import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import type { SandboxOptions, SandboxResult } from '../../../src/index.js';
import { patience } from '../../support/lane.js';
import type { Attempt, Guest, Options } from './attack.js';
import { verdictOf } from './lab.js';
import type { Lab } from './lab.js';

const script = fileURLToPath(new URL('../../fixtures/escape/host.mjs', import.meta.url));
const library = fileURLToPath(new URL('../../../dist/index.js', import.meta.url));

/** The command of a host of its own, for what a test cannot do to the process that it runs in. It needs `npm run build`. */
export function childHost(work: { runs: SandboxOptions[]; forever?: boolean; concurrency?: number; withoutLandlock?: boolean }): Guest {
  if (!existsSync(library)) throw new Error(`${library} is missing: type "npm run build"`);
  return { command: process.execPath, args: [script, JSON.stringify(work)] };
}

/** What a host of its own needs of this one's environment: where an ordinary user's sandboxes may have their cgroups. */
export function hostEnvironment(): Record<string, string> {
  const place = process.env['RINGFENCE_CGROUP'];
  return { PATH: process.env['PATH'] ?? '', ...(place === undefined ? {} : { RINGFENCE_CGROUP: place }) };
}

/**
 * Runs the guest in a sandbox of a host that is started by another command, in another directory or with other variables.
 * @param about `through` is the command that starts the host
 */
export async function runInChildHost(
  lab: Lab,
  { command, args }: Guest,
  options: Options,
  about: { through?: string[]; cwd?: string; env?: Record<string, string> },
): Promise<Attempt> {
  const { through = [], env, ...rest } = about;
  const { landlock, ...others } = options;
  const read = [...(options.filesystem?.read ?? []), lab.program];
  const host = childHost({
    runs: [{ timeoutMs: patience(20_000), ...others, command, args, filesystem: { ...options.filesystem, read } }],
    ...(landlock === false && { withoutLandlock: true }),
  });
  const [first = '', ...words] = [...through, host.command, ...host.args];
  const { stdout, words: said } = await lab.outside({ command: first, args: words }, { timeoutMs: patience(30_000), env: { ...hostEnvironment(), ...env }, ...rest });
  const [line = ''] = stdout.split('\n');
  if (!line.startsWith('{')) throw new Error(`the host gave no result: ${said}`);
  const result = JSON.parse(line) as SandboxResult;
  return { ...verdictOf(result.stdout), exitCode: result.exitCode, result };
}
