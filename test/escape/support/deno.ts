import { createRequire } from 'node:module';
import path from 'node:path';

/** The real executable behind the npm package `deno`. */
export function denoPath(): string {
  const require = createRequire(createRequire(import.meta.url).resolve('deno/package.json'));
  const name = process.arch === 'arm64' ? '@deno/linux-arm64-glibc' : '@deno/linux-x64-glibc';
  return path.join(path.dirname(require.resolve(`${name}/package.json`)), 'deno');
}
