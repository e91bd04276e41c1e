import { existsSync } from 'node:fs';

/** A file of the build, whether this module runs from the build or, as in tests, from the sources. */
export function builtFile(path: string): URL {
  const beside = new URL(path, import.meta.url);
  return existsSync(beside) ? beside : new URL(`../../dist/guest/${path}`, import.meta.url);
}
