// Everything a checkout needs before it can start or be tested. Uses nothing but Node's own modules, for it runs first.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from './build.mjs';
import { BuildError, canRun } from './compile/command.mjs';
import { createProgress } from './compile/progress.mjs';
import { needsBuild } from './compile/sources.mjs';

const root = dirname(import.meta.dirname);

/**
 * Brings the checkout up to date; does nothing where nothing is missing.
 * `apt`: Debian packages that the caller wants. They are installed when the account is root; else the command to type is
 * printed. Returns the names of those that are still missing. Throws a BuildError that says what to do.
 */
export async function setUp({ apt = [], progress = createProgress() } = {}) {
  installDependencies(progress);
  const stale = needsBuild(root);
  const missing = installDebianPackages([...(stale ? missingTools() : []), ...apt], progress);
  if (stale) await build(root, progress);
  return { missing };
}

/** Runs what `setUp` promises and ends the process with a readable message when it fails. */
export async function setUpOrExit(options) {
  try {
    return await setUp(options);
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return process.exit(1);
  }
}

/** `npm ci` when node_modules is missing or is not what package-lock.json says. */
export function installDependencies(progress) {
  if (!dependenciesAreStale()) return;
  progress.line('installing npm packages');
  const done = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (done.status !== 0) throw new BuildError('npm ci failed: see above');
}

// npm keeps what it installed in node_modules/.package-lock.json. A newer package-lock.json alone proves nothing, a
// checkout of another branch and back makes one.
function dependenciesAreStale() {
  const installed = join(root, 'node_modules/.package-lock.json');
  const wanted = join(root, 'package-lock.json');
  if (!existsSync(installed)) return true;
  if (statSync(installed).mtimeMs >= statSync(wanted).mtimeMs) return false;
  const have = JSON.parse(readFileSync(installed, 'utf8')).packages;
  const want = JSON.parse(readFileSync(wanted, 'utf8')).packages;
  return Object.entries(want).some(
    ([path, entry]) => path !== '' && entry.optional !== true && have[path]?.version !== entry.version,
  );
}

function missingTools() {
  const tools = [
    ['g++', process.env.CXX ?? 'g++'],
    ['make', 'make'],
    ['python3', 'python3'],
  ];
  return tools.filter(([, command]) => !canRun(command)).map(([name]) => name);
}

/** Installs the Debian packages that are not there. Returns the names of those that still are not. */
export function installDebianPackages(names, progress) {
  const missing = [...new Set(names)].filter((name) => !isInstalled(name));
  if (missing.length === 0) return [];
  if (process.getuid() !== 0 || !canRun('apt-get')) {
    progress.line(`missing: type "sudo apt-get install -y ${missing.join(' ')}"`);
    return missing;
  }
  progress.line(`apt-get install ${missing.join(' ')}`);
  if (!hasPackageLists()) aptGet('update');
  if (!aptGet('install', '-y', '--no-install-recommends', ...missing)) {
    aptGet('update'); // lists that are too old name files that the mirror no longer has
    aptGet('install', '-y', '--no-install-recommends', ...missing);
  }
  const still = missing.filter((name) => !isInstalled(name));
  if (still.length > 0) progress.line(`apt-get could not install ${still.join(' ')}: type "apt-get install ${still.join(' ')}"`);
  return still;
}

function isInstalled(name) {
  const query = spawnSync('dpkg-query', ['-W', '-f=${Status}', name], { encoding: 'utf8' });
  return query.status === 0 && query.stdout.includes('ok installed');
}

function hasPackageLists() {
  const lists = '/var/lib/apt/lists';
  return existsSync(lists) && readdirSync(lists).some((name) => /_Packages(\.\w+)?$/.test(name));
}

function aptGet(...args) {
  const done = spawnSync('apt-get', ['-qq', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  return done.status === 0;
}

if (process.argv[1] === import.meta.filename) {
  const { missing } = await setUpOrExit({ apt: process.argv.slice(2) });
  process.exitCode = missing.length === 0 ? 0 : 1;
}
