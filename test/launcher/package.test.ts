import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { locateAddon, locateLauncher, NativeFileError } from '../../src/launcher/locate.js';
import { whereAmI } from '../support/lane.js';
import { belongsHere, needs } from '../support/skip.js';
import { temporaryDirectory } from '../support/temporary.js';

const root = path.resolve(import.meta.dirname, '../..');
const architectures = ['x64', 'arm64'];

/** Runs a program that is there for sure, or throws with what it printed. */
function output(command: string, args: string[], cwd = root): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 2 ** 26 });
}

function isInstalled(command: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((directory) => existsSync(path.join(directory, command)));
}

// Packing compiles everything twice and writes into the checkout: once, where that is quick and allowed.
const lane = whereAmI();
const here = lane.root && !lane.uml;
const missing = isInstalled('aarch64-linux-gnu-g++') ? null : 'no cross compiler: type "apt-get install g++-aarch64-linux-gnu"';

describe('the package', () => {
  let work = '';
  let project = '';
  let installed = '';

  beforeAll(() => {
    if (!here || missing !== null) return;
    work = mkdtempSync(path.join(tmpdir(), 'test-package-'));
    output('npm', ['pack', '--pack-destination', work]);
    project = installTarball(work);
    installed = path.join(project, 'node_modules/ringfence');
  }, 300_000);
  afterAll(() => {
    if (work !== '') rmSync(work, { recursive: true });
  });

  function packed(title: string, test: () => void): void {
    it(title, (context) => {
      belongsHere(context, here, 'as root on this kernel');
      needs(context, missing);
      test();
    });
  }

  packed('holds dist and binaries of every architecture, and nothing to build from', () => {
    expect(readdirSync(installed).sort()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json', 'prebuilds']);
    expect(readdirSync(path.join(installed, 'prebuilds')).sort()).toEqual(['linux-arm64', 'linux-x64']);
  });

  packed('has no install script', () => {
    const { scripts, gypfile } = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8')) as Record<string, object>;
    for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) expect(scripts).not.toHaveProperty(name);
    expect(gypfile).toBe(false); // without it npm takes a binding.gyp for an install script
  });

  packed('finds and loads its binaries in a project where nothing was built', () => {
    const script = `
      import { locateAddon, locateLauncher } from ${JSON.stringify(path.join(installed, 'dist/launcher/locate.js'))};
      import { native } from ${JSON.stringify(path.join(installed, 'dist/launcher/addon.js'))};
      console.log(JSON.stringify([locateAddon(), locateLauncher(), Object.keys(native())]));`;
    const prebuilt = path.join(installed, `prebuilds/linux-${process.arch}`);
    expect(JSON.parse(output(process.execPath, ['--input-type=module', '-e', script], project))).toEqual([
      path.join(prebuilt, 'ringfence.node'),
      path.join(prebuilt, 'ringfence-launcher'),
      ['launch', 'keepPlace', 'watchPackets', 'socketDrops', 'packetCount'],
    ]);
  });

  packed('runs a sandbox through its command', () => {
    expect(output(path.join(project, 'node_modules/.bin/ringfence'), ['run', '--', '/bin/echo', 'fenced'], project)).toBe('fenced\n');
  });

  packed('has executable, stripped binaries of the right machine', () => {
    const machines: Record<string, string> = { x64: 'X86-64', arm64: 'AArch64' };
    for (const arch of architectures) {
      for (const file of ['ringfence.node', 'ringfence-launcher']) {
        const binary = path.join(installed, `prebuilds/linux-${arch}`, file);
        expect(statSync(binary).mode & 0o777).toBe(0o755);
        expect(output('readelf', ['-hW', binary])).toMatch(new RegExp(`Machine:.*${machines[arch]}`));
        expect(output('readelf', ['-SW', binary])).not.toContain('.symtab');
      }
    }
  });

  packed('asks for no glibc newer than 2.28, and its launcher for none', () => {
    for (const arch of architectures) {
      const directory = path.join(installed, `prebuilds/linux-${arch}`);
      const versions = [...output('readelf', ['-VW', path.join(directory, 'ringfence.node')]).matchAll(/Name: ([A-Z]+)_([\d.]+)/g)];
      expect(versions.length).toBeGreaterThan(0);
      const ceilings: Record<string, string> = { GLIBC: '2.28', GLIBCXX: '3.4.21', CXXABI: '1.3.9' };
      const above = versions.filter(([, library = '', version = '']) => isNewer(version, ceilings[library] ?? '0'));
      expect(above.map(([text]) => text)).toEqual([]);
      expect(output('readelf', ['-lW', path.join(directory, 'ringfence-launcher')])).not.toMatch(/INTERP|DYNAMIC/);
    }
  });

  it('has an arm64 launcher that runs: without a plan it ends with an error', (context) => {
    belongsHere(context, here, 'as root on this kernel');
    needs(context, missing ?? (isInstalled('qemu-aarch64-static') ? null : 'no emulator: type "apt-get install qemu-user-static"'));
    const launcher = path.join(installed, 'prebuilds/linux-arm64/ringfence-launcher');
    expect(() => output('qemu-aarch64-static', [launcher])).toThrow(expect.objectContaining({ status: 1 }));
  });
});

// Dependencies come from this checkout, so that npm has everything and asks no registry.
function installTarball(work: string): string {
  const project = path.join(work, 'project');
  mkdirSync(project);
  writeFileSync(path.join(project, 'package.json'), '{ "name": "project", "private": true }');
  const [, ...dependencies] = output('npm', ['ls', '--omit=dev', '--all', '--parseable']).trim().split('\n');
  for (const directory of dependencies) {
    cpSync(directory, path.join(project, path.relative(root, directory)), { recursive: true });
  }
  const tarball = readdirSync(work).find((name) => name.endsWith('.tgz')) ?? '';
  output('npm', ['install', '--ignore-scripts', '--offline', path.join(work, tarball)], project);
  return project;
}

function isNewer(version: string, ceiling: string): boolean {
  return version.localeCompare(ceiling, 'en', { numeric: true }) > 0;
}

describe('locating native files', () => {
  const file = (directory: string, place: string, name: string, mode: number): string => {
    mkdirSync(path.join(directory, place), { recursive: true });
    const created = path.join(directory, place, name);
    writeFileSync(created, '', { mode });
    return created;
  };

  it('takes what a checkout built before what the package ships', () => {
    const directory = temporaryDirectory();
    const shipped = file(directory, 'prebuilds/linux-arm64', 'ringfence-launcher', 0o755);
    expect(locateLauncher({ root: directory, arch: 'arm64' })).toBe(shipped);
    const built = file(directory, 'build/Release', 'ringfence-launcher', 0o755);
    expect(locateLauncher({ root: directory, arch: 'arm64' })).toBe(built);
  });

  it('says what is missing, where it looked and what to type', () => {
    const search = { root: temporaryDirectory(), arch: 'riscv64' };
    expect(() => locateAddon(search)).toThrow(NativeFileError);
    expect(() => locateAddon(search)).toThrow(
      /^no addon for linux-riscv64: neither .*\/build\/Release\/ringfence\.node nor .*\/prebuilds\/linux-riscv64\/ringfence\.node exists; .*"npm run build"/,
    );
  });

  it('names the remedy for a launcher that lost its executable bit', () => {
    const directory = temporaryDirectory();
    const launcher = file(directory, 'prebuilds/linux-x64', 'ringfence-launcher', 0o644);
    expect(() => locateLauncher({ root: directory, arch: 'x64' })).toThrow(`type "chmod 755 ${launcher}"`);
  });
});
