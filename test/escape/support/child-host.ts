import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import type { SandboxOptions } from '../../../src/index.js';

const script = fileURLToPath(new URL('../../fixtures/escape/host.mjs', import.meta.url));
const library = fileURLToPath(new URL('../../../dist/index.js', import.meta.url));

/** The command of a host of its own, for what a test cannot do to the process that it runs in. It needs `npm run build`. */
export function childHost(work: { runs: SandboxOptions[]; forever?: boolean; concurrency?: number }): { command: string; args: string[] } {
  if (!existsSync(library)) throw new Error(`${library} is missing: type "npm run build"`);
  return { command: process.execPath, args: [script, JSON.stringify(work)] };
}
