// npm pack runs this (prepack): dist, and addon and launcher for every architecture the package is for.
import { chmodSync, copyFileSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from './build.mjs';
import { BuildError, canRun, run } from './compile/command.mjs';
import { withBuildLock } from './compile/lock.mjs';
import { buildNative } from './compile/native.mjs';
import { createProgress } from './compile/progress.mjs';

const root = dirname(import.meta.dirname);

// Debian's names: compiler and strip are <triplet>-g++ and <triplet>-strip, of the package g++-<triplet>.
const architectures = [
  { arch: 'x64', triplet: 'x86_64-linux-gnu', debian: 'g++-x86-64-linux-gnu' },
  { arch: 'arm64', triplet: 'aarch64-linux-gnu', debian: 'g++-aarch64-linux-gnu' },
];

const files = ['ringfence.node', 'ringfence-launcher'];

async function prebuild(progress) {
  for (const { triplet, debian } of architectures) {
    if (canRun(`${triplet}-g++`)) continue;
    throw new BuildError(`cannot compile for ${triplet}: type "apt-get install ${debian}"`);
  }
  await build(root, progress);
  await withBuildLock(root, progress.line, async () => {
    rmSync(join(root, 'prebuilds'), { recursive: true, force: true });
    for (const each of architectures) await prebuildFor(each, progress);
  });
}

async function prebuildFor({ arch, triplet }, progress) {
  const directory = freshDirectory(arch);
  await buildNative({
    directory,
    arch,
    compiler: { cc: `${triplet}-gcc`, cxx: `${triplet}-g++` },
    onStep: (step) => progress.step(`linux-${arch}: ${step}`),
  });
  const target = join(root, `prebuilds/linux-${arch}`);
  mkdirSync(target, { recursive: true });
  for (const file of files) {
    copyFileSync(join(directory, 'build/Release', file), join(target, file));
    await run(`${triplet}-strip`, ['--strip-all', join(target, file)]);
    chmodSync(join(target, file), 0o755); // whatever the umask: npm keeps the executable bit of the file it packs
  }
  progress.line(`prebuilds/linux-${arch}: ${files.join(', ')}`);
}

// node-gyp builds below the directory of binding.gyp, so each architecture gets one, with links to the sources: the
// flags stay in one place. Always from nothing, for this is what is published.
function freshDirectory(arch) {
  const directory = join(root, `build/prebuild-${arch}`);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const name of ['native', 'binding.gyp', 'package.json', 'node_modules']) {
    symlinkSync(join(root, name), join(directory, name));
  }
  return directory;
}

try {
  await prebuild(createProgress());
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
