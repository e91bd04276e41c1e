// npm run build: the native part into build/Release, TypeScript into dist; only what has changed.
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BuildError } from './compile/command.mjs';
import { withBuildLock } from './compile/lock.mjs';
import { buildNative } from './compile/native.mjs';
import { createProgress } from './compile/progress.mjs';
import { stamp } from './compile/sources.mjs';
import { buildTypeScript } from './compile/typescript.mjs';

export async function build(root, progress = createProgress()) {
  await withBuildLock(root, progress.line, async () => {
    const started = new Date();
    await buildNative({ directory: root, onStep: progress.step });
    await buildTypeScript({ root, onStep: progress.step });
    markBuilt(join(root, stamp), started);
    progress.line(`built in ${((Date.now() - started.getTime()) / 1000).toFixed(1)} s`);
  });
}

// A source saved while the build ran is newer than its start: the next build sees it.
function markBuilt(path, started) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, '');
  utimesSync(path, started, started);
}

if (process.argv[1] === import.meta.filename) {
  try {
    await build(dirname(import.meta.dirname));
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
