/** The runtimes that a plan has to find, started for real: each finds its own files, and nothing of the home around it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, existsSync, linkSync, mkdirSync, readFileSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { beforeAll, describe, expect, it } from 'vitest';
import type { TestContext } from 'vitest';

import { readHostFacts } from '../../src/host/facts.js';
import { runSandboxed } from '../../src/run/run.js';
import { patience } from '../support/lane.js';
import { needs } from '../support/skip.js';
import { temporaryDirectory } from '../support/temporary.js';

const project = realpathSync(fileURLToPath(new URL('../..', import.meta.url)));
const TIMEOUT_MS = patience(20_000);

let noCgroup: string | null = null;
beforeAll(async () => {
  const { cgroup } = await readHostFacts();
  if (cgroup.kind === 'unavailable') noCgroup = `a cgroup of its own: ${cgroup.hint}`;
});

async function outputOf(context: TestContext, command: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  needs(context, noCgroup);
  const result = await runSandboxed({ command, args, env, timeoutMs: TIMEOUT_MS, limits: { memoryMb: 1024 } });
  expect(result).toMatchObject({ outcome: 'exit', exitCode: 0, errorMessage: '' });
  return result.stdout.trim();
}

/** A home as nvm lays it out: this very Node, an npm, and things that are nobody's business. */
function nvmHome(context: TestContext) {
  const npm = path.join(path.dirname(realpathSync(process.execPath)), '../lib/node_modules/npm');
  needs(context, existsSync(npm) ? null : `npm beside ${process.execPath}`);
  const home = realpathSync(temporaryDirectory());
  const prefix = `${home}/.nvm/versions/node/v20.0.0`;
  mkdirSync(`${prefix}/bin`, { recursive: true });
  try {
    linkSync(realpathSync(process.execPath), `${prefix}/bin/node`);
  } catch {
    copyFileSync(realpathSync(process.execPath), `${prefix}/bin/node`);
    chmodSync(`${prefix}/bin/node`, 0o755);
  }
  cpSync(npm, `${prefix}/lib/node_modules/npm`, { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', `${prefix}/bin/npm`);
  symlinkSync('versions/node/v20.0.0', `${home}/.nvm/current`);
  writeFileSync(`${home}/.npmrc`, '//registry.example/:_authToken=secret\n');
  mkdirSync(`${prefix}/share`);
  return { home, prefix, env: { HOME: home, PATH: `${prefix}/bin:/usr/bin:/bin` } };
}

describe('a Node under a home directory', () => {
  it('starts from its own place and sees nothing else of the home', async (context) => {
    const { home, prefix, env } = nvmHome(context);
    const script = `const fs = require('fs');
      console.log(JSON.stringify([process.execPath, fs.readdirSync(${JSON.stringify(home)}), fs.readdirSync(${JSON.stringify(prefix)})]))`;
    expect(JSON.parse(await outputOf(context, 'node', ['-e', script], env))).toEqual([`${prefix}/bin/node`, ['.nvm'], ['bin', 'lib']]);
  });

  it('runs npm, by its version and by the link to the current one, in directories that are shut to others', async (context) => {
    const { home, prefix, env } = nvmHome(context);
    const { version } = JSON.parse(readFileSync(`${prefix}/lib/node_modules/npm/package.json`, 'utf8')) as { version: string };
    expect(await outputOf(context, 'npm', ['--version'], env)).toBe(version);
    for (const directory of [home, `${prefix}/lib`]) chmodSync(directory, 0o700);
    expect(await outputOf(context, 'npm', ['--version'], { ...env, PATH: `${home}/.nvm/current/bin:/usr/bin:/bin` })).toBe(version);
  }, patience(40_000));
});

describe('Deno of the npm package', () => {
  const platform = existsSync(`${project}/node_modules/@deno`) ? readdirSync(`${project}/node_modules/@deno`)[0] : undefined;

  it('starts by its link and as the binary itself', async (context) => {
    needs(context, platform === undefined ? 'the deno package for this platform: npm install' : null);
    for (const command of [`${project}/node_modules/.bin/deno`, `${project}/node_modules/@deno/${platform}/deno`]) {
      expect(await outputOf(context, command, ['eval', 'console.log(Deno.execPath())'])).toBe(`${project}/node_modules/@deno/${platform}/deno`);
    }
  }, patience(40_000));
});

describe('scripts', () => {
  it('finds shells by their usual names', async (context) => {
    for (const command of ['/bin/sh', 'sh', '/usr/bin/env']) {
      const args = command.endsWith('env') ? ['sh', '-c', 'echo $0'] : ['-c', 'echo $0'];
      expect(await outputOf(context, command, args)).toMatch(/sh$/);
    }
  });

  it('runs a script whose interpreter is a script that env looks up', async (context) => {
    const directory = realpathSync(temporaryDirectory());
    mkdirSync(`${directory}/tools`);
    writeFileSync(`${directory}/tools/inner`, '#!/bin/sh\necho inner "$@"\n');
    writeFileSync(`${directory}/script`, '#!/usr/bin/env -S inner -x\n');
    for (const file of ['tools/inner', 'script']) chmodSync(`${directory}/${file}`, 0o755);
    const env = { PATH: `${directory}/tools:/usr/bin:/bin` };
    expect(await outputOf(context, `${directory}/script`, ['arg'], env)).toBe(`inner -x ${directory}/script arg`);
  });

  it('runs the Python of a virtual environment, and a script that it runs', async (context) => {
    needs(context, existsSync('/usr/bin/python3') ? null : '/usr/bin/python3 (Debian package python3)');
    const root = realpathSync(temporaryDirectory());
    execFileSync('/usr/bin/python3', ['-m', 'venv', '--without-pip', `${root}/venv`]);
    writeFileSync(`${root}/venv/bin/tool`, `#!${root}/venv/bin/python\nimport sys\nprint(sys.prefix)\n`);
    chmodSync(`${root}/venv/bin/tool`, 0o755);
    expect(await outputOf(context, `${root}/venv/bin/tool`, [])).toBe(`${root}/venv`);
    expect(await outputOf(context, 'python', ['-c', 'import sys; print(sys.prefix)'], { PATH: `${root}/venv/bin` })).toBe(`${root}/venv`);
  }, patience(40_000));
});
