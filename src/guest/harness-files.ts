import { existsSync, readFileSync } from 'node:fs';

/** Where the harness lies inside a sandbox. */
const DIRECTORY = '/ringfence';

export interface HarnessFiles {
  /** Path of the module to start, inside the sandbox. */
  entry: string;
  files: { path: string; content: string }[];
}

/** The built harness as files of a sandbox. @throws when the package was not built. */
export function harnessFiles(entry: string, others: readonly string[]): HarnessFiles {
  const beside = new URL('./harness/', import.meta.url);
  // Run from the sources, as tests do, the build's output is elsewhere.
  const directory = existsSync(new URL(`${entry}.mjs`, beside)) ? beside : new URL('../../dist/guest/harness/', import.meta.url);
  const path = (name: string) => `${DIRECTORY}/${name}.mjs`;
  return {
    entry: path(entry),
    files: [entry, ...others].map((name) => ({ path: path(name), content: readFileSync(new URL(`${name}.mjs`, directory), 'utf8') })),
  };
}
