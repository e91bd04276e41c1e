import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** What the build reads, relative to the root. */
export const inputs = ['native', 'src', 'binding.gyp', 'tsconfig.json', 'scripts/build.mjs', 'scripts/compile'];

/** What the build leaves behind; `stamp` is as old as the start of the last build that ended well. */
export const stamp = 'build/ringfence.stamp';
export const outputs = ['build/Release/ringfence.node', 'build/Release/ringfence-launcher', 'dist/index.js', stamp];

/** True when a build would change something. Directories count: a removed file makes its directory newer. */
export function needsBuild(root) {
  if (outputs.some((path) => !existsSync(join(root, path)))) return true;
  return newest(inputs.map((path) => join(root, path))) > statSync(join(root, stamp)).mtimeMs;
}

/** Modification time in milliseconds of the newest file or directory below the paths. */
export function newest(paths) {
  let latest = 0;
  for (const path of paths) {
    const facts = statSync(path, { throwIfNoEntry: false }); // an editor's temporary file may be gone by now
    if (facts === undefined) continue;
    latest = Math.max(latest, facts.mtimeMs);
    if (facts.isDirectory()) latest = Math.max(latest, newest(readdirSync(path).map((name) => join(path, name))));
  }
  return latest;
}
