import { readFileSync } from 'node:fs';

import { builtFile } from './built.js';

/** Where the harness lies inside a sandbox. */
const DIRECTORY = '/ringfence';

export interface HarnessFiles {
  /** Path of the module to start, inside the sandbox. */
  entry: string;
  files: { path: string; content: string }[];
}

/** The built harness as files of a sandbox. @throws when the package was not built. */
export function harnessFiles(entry: string, others: readonly string[]): HarnessFiles {
  const path = (name: string) => `${DIRECTORY}/${name}.mjs`;
  const content = (name: string) => readFileSync(builtFile(`harness/${name}.mjs`), 'utf8');
  return { entry: path(entry), files: [entry, ...others].map((name) => ({ path: path(name), content: content(name) })) };
}
