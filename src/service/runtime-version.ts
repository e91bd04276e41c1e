import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { SettingError } from './settings.js';
import type { ServiceSettings } from './settings.js';

/** The version of the runtime that holds the functions, for example `2.9.6`. @throws SettingError when there is none. */
export async function runtimeVersion({ runtime, denoBin }: Pick<ServiceSettings, 'runtime' | 'denoBin'>): Promise<string> {
  if (runtime === 'node') return process.versions.node;
  const { stdout } = await promisify(execFile)(denoBin, ['--version'], { timeout: 10_000 }).catch((error: NodeJS.ErrnoException) => {
    throw new SettingError(`DENO_BIN is ${denoBin}, which cannot be run (${error.code ?? 'it failed'}): install Deno, name its program, or set RINGFENCE_RUNTIME=node`);
  });
  const [, version] = /^deno (\S+)/.exec(stdout) ?? [];
  if (version === undefined) throw new SettingError(`DENO_BIN is ${denoBin}, which is no Deno`);
  return version;
}
