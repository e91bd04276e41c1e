import { existsSync, realpathSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { BuildError, canRun, run } from './command.mjs';

/**
 * Addon and launcher into `<directory>/build/Release`, by the binding.gyp of that directory.
 * `compiler` is set to cross-compile: `{ cc, cxx }`, with `arch` in Node's spelling.
 */
export async function buildNative({ directory, arch = process.arch, compiler = null, onStep = () => {} }) {
  const env = { ...process.env, ...(compiler === null ? {} : crossEnvironment(compiler)) };
  requireTools(env);
  const nodeGyp = join(directory, 'node_modules/node-gyp/bin/node-gyp.js');
  if (!existsSync(nodeGyp)) throw new BuildError('node-gyp is not installed: type "npm ci --ignore-scripts"');
  if (needsConfigure(directory)) {
    onStep('native: configure');
    const args = [nodeGyp, 'configure', '--release', `--arch=${arch}`, ...headers()];
    await run(process.execPath, args, { cwd: directory, env });
  }
  const jobs = `-j${availableParallelism()}`;
  await run('make', ['-C', 'build', 'BUILDTYPE=Release', jobs], {
    cwd: directory,
    env,
    onLine: (line) => {
      const step = /^\s+(?:CXX|LINK|SOLINK_MODULE)\(target\) (?:Release\/)?(?:obj\.target\/)?(.*)$/.exec(line);
      if (step !== null) onStep(`native: ${step[1]}`);
    },
  });
}

// In a cross build gyp would take CC and CXX for the machine's own compiler and expect CC_target beside them.
function crossEnvironment({ cc, cxx }) {
  return { CC: cc, CXX: cxx, CC_target: cc, CXX_target: cxx };
}

function requireTools(env) {
  const cxx = env.CXX ?? 'g++';
  const missing = [];
  if (!canRun(cxx)) missing.push([cxx, env.CXX === undefined ? 'g++' : `the package of ${cxx}`]);
  if (!canRun('make')) missing.push(['make', 'make']);
  if (!canRun(env.npm_config_python ?? env.PYTHON ?? 'python3')) missing.push(['python3 (for node-gyp)', 'python3']);
  if (missing.length === 0) return;
  throw new BuildError(
    `cannot compile the native part without ${missing.map(([what]) => what).join(', ')}: ` +
      `type "apt-get install ${missing.map(([, name]) => name).join(' ')}"`,
  );
}

// Sources are listed when gyp runs, so a file added or removed (which makes its directory newer) asks for a new run.
function needsConfigure(directory) {
  const makefile = join(directory, 'build/Makefile');
  if (!existsSync(makefile)) return true;
  const made = statSync(makefile).mtimeMs;
  return ['binding.gyp', 'native/addon', 'native/launcher', 'package-lock.json'].some(
    (path) => existsSync(join(directory, path)) && statSync(join(directory, path)).mtimeMs > made,
  );
}

// Node's own headers where they came along with it: node-gyp would download them.
function headers() {
  const prefix = dirname(dirname(realpathSync(process.execPath)));
  return existsSync(join(prefix, 'include/node/node_api.h')) ? [`--nodedir=${prefix}`] : [];
}
