import { existsSync, chmodSync, copyFileSync, linkSync, mkdirSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { beforeAll, describe, expect, it } from 'vitest';

import type { BaseView } from '../../src/plan/base-view.js';
import { readBaseView } from '../../src/plan/base-view.js';
import { findExecutable } from '../../src/plan/executable.js';
import type { RuntimeContext } from '../../src/plan/runtime-files.js';
import { findRuntimeFiles } from '../../src/plan/runtime-files.js';
import { needs } from '../support/skip.js';
import { temporaryDirectory } from '../support/temporary.js';

const project = realpathSync(fileURLToPath(new URL('../..', import.meta.url)));
const SEARCH_PATH = '/usr/local/bin:/usr/bin:/bin';

let base: BaseView;
beforeAll(async () => {
  base = await readBaseView(SEARCH_PATH);
});

async function runtimeOf(command: string, change: Partial<RuntimeContext> = {}) {
  const context: RuntimeContext = { base, searchPath: SEARCH_PATH, visible: [], homes: [], scratch: [], ...change };
  const found = await findExecutable(command, context.searchPath, base);
  const { binds, links } = await findRuntimeFiles(found, context);
  return { binds: [...binds.keys()].sort(), links: Object.fromEntries(links) };
}

function file(at: string, content = '#!/bin/sh\n'): string {
  mkdirSync(path.dirname(at), { recursive: true });
  writeFileSync(at, content);
  chmodSync(at, 0o755);
  return at;
}

/** A hard link where that can be, for a Node is 100 MB. */
function cloneOf(source: string, target: string): void {
  mkdirSync(path.dirname(target), { recursive: true });
  try {
    linkSync(source, target);
  } catch {
    copyFileSync(source, target);
  }
}

/** A home as nvm lays it out, with this very Node. */
function nvmHome(): { home: string; prefix: string } {
  const home = realpathSync(temporaryDirectory());
  const prefix = `${home}/.nvm/versions/node/v20.0.0`;
  cloneOf(realpathSync(process.execPath), `${prefix}/bin/node`);
  file(`${prefix}/lib/node_modules/npm/bin/npm-cli.js`, '#!/usr/bin/env node\n');
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', `${prefix}/bin/npm`);
  file(`${prefix}/share/secret`);
  file(`${home}/.npmrc`, '//registry/:_authToken=x');
  return { home, prefix };
}

describe('files of the system', () => {
  it.each(['/bin/true', '/bin/sh', '/usr/bin/env', 'sh'])('needs nothing for %s', async (command) => {
    expect(await runtimeOf(command)).toEqual({ binds: [], links: {} });
  });

  it('needs nothing for a script of the system', async () => {
    const directory = realpathSync(temporaryDirectory());
    const script = file(`${directory}/x/script`, '#!/usr/bin/env sh\n');
    expect(await runtimeOf(script)).toEqual({ binds: [script], links: {} });
  });
});

describe('a Node under a home directory', () => {
  it('shows its prefix without share, and nothing of the home', async () => {
    const { home, prefix } = nvmHome();
    expect(await runtimeOf(`${prefix}/bin/node`, { homes: [home], scratch: [home] })).toEqual({ binds: [`${prefix}/bin`, `${prefix}/lib`], links: {} });
  });

  it('finds the same for npm, and for the Node that runs it', async () => {
    const { home, prefix } = nvmHome();
    const context = { searchPath: `${prefix}/bin:${SEARCH_PATH}`, homes: [home], scratch: [home] };
    expect(await runtimeOf('npm', context)).toEqual({ binds: [`${prefix}/bin`, `${prefix}/lib`, `${prefix}/lib/node_modules`], links: {} });
  });

  it('makes a link of the version that is current', async () => {
    const { home, prefix } = nvmHome();
    symlinkSync('versions/node/v20.0.0', `${home}/.nvm/current`);
    expect(await runtimeOf(`${home}/.nvm/current/bin/node`, { homes: [home], scratch: [home] })).toEqual({
      binds: [`${prefix}/bin`, `${prefix}/lib`],
      links: { [`${home}/.nvm/current`]: prefix },
    });
  });

  it('shows only the file where the home itself would be the prefix', async () => {
    const { home } = nvmHome();
    const tool = file(`${home}/bin/tool`);
    expect(await runtimeOf(tool, { homes: [home] })).toEqual({ binds: [tool], links: {} });
    expect(await runtimeOf(tool, { homes: [`${home}/nested/home`] })).toEqual({ binds: [tool], links: {} });
    expect(await runtimeOf(tool)).toEqual({ binds: [`${home}/bin`], links: {} });
  });

  it('binds nothing over a scratch directory', async () => {
    const prefix = realpathSync(temporaryDirectory());
    file(`${prefix}/lib/x`);
    const tool = file(`${prefix}/bin/tool`);
    expect(await runtimeOf(tool, { scratch: [`${prefix}/lib/tmp`] })).toEqual({ binds: [`${prefix}/bin`], links: {} });
    expect(await runtimeOf(tool, { scratch: [`${prefix}/bin/tmp`] })).toEqual({ binds: [tool], links: {} });
  });

  it('shows nothing twice that a grant shows already', async () => {
    const { prefix } = nvmHome();
    expect(await runtimeOf(`${prefix}/bin/node`, { visible: [prefix] })).toEqual({ binds: [], links: {} });
  });
});

describe('Deno of the npm package', () => {
  const platform = existsSync(`${project}/node_modules/@deno`) ? readdirSync(`${project}/node_modules/@deno`)[0] : undefined;
  const missing = platform === undefined ? 'the deno package for this platform: npm install' : null;

  it('shows the node_modules that hold the command, by its link', async (context) => {
    needs(context, missing);
    expect(await runtimeOf(`${project}/node_modules/.bin/deno`)).toEqual({ binds: [`${project}/node_modules`], links: {} });
  });

  it('shows the same for the binary itself', async (context) => {
    needs(context, missing);
    expect(await runtimeOf(`${project}/node_modules/@deno/${platform}/deno`)).toEqual({ binds: [`${project}/node_modules`], links: {} });
  });

  it('takes the outermost node_modules, which the inner ones link to', async () => {
    const root = realpathSync(temporaryDirectory());
    const real = file(`${root}/app/node_modules/.pnpm/x@1/node_modules/x/cli.js`, '#!/usr/bin/env node\n');
    mkdirSync(`${root}/app/node_modules/.bin`);
    symlinkSync('../.pnpm/x@1/node_modules/x/cli.js', `${root}/app/node_modules/.bin/x`);
    expect(await runtimeOf(`${root}/app/node_modules/.bin/x`)).toEqual({ binds: [`${root}/app/node_modules`], links: {} });
    expect(await runtimeOf(real)).toMatchObject({ binds: [`${root}/app/node_modules`] });
  });

  it('does not take a node_modules that holds a home', async () => {
    const root = realpathSync(temporaryDirectory());
    const tool = file(`${root}/node_modules/x/tool`);
    expect(await runtimeOf(tool, { homes: [`${root}/node_modules/home`] })).toEqual({ binds: [tool], links: {} });
  });
});

describe('scripts and links', () => {
  it('follows an interpreter out of the system, and the interpreter of that', async () => {
    const root = realpathSync(temporaryDirectory());
    file(`${root}/opt/lib/x`);
    const inner = file(`${root}/opt/bin/inner`, '#!/bin/sh\n');
    const outer = file(`${root}/outer`, `#!${inner}\n`);
    const script = file(`${root}/script`, `#!${outer} -x\n`);
    const searchPath = `${root}:${root}/opt/bin:${SEARCH_PATH}`;
    expect((await runtimeOf(script, { searchPath })).binds).toEqual([`${root}/opt/bin`, `${root}/opt/lib`, outer, script].sort());
  });

  it('lets no script choose what else of the host is shown', async () => {
    const root = realpathSync(temporaryDirectory());
    file(`${root}/private/lib/config.py`);
    const private_ = file(`${root}/private/bin/deploy`, '#!/bin/sh\n');
    const modules = file(`${root}/other/node_modules/.bin/node`);
    for (const interpreter of [private_, modules]) {
      const script = file(`${root}/script`, `#!${interpreter}\n`);
      expect((await runtimeOf(script)).binds).toEqual([script]);
      const byEnv = file(`${root}/script`, `#!/usr/bin/env ${interpreter}\n`);
      expect((await runtimeOf(byEnv)).binds).toEqual([byEnv]);
    }
  });

  it('shows an interpreter that comes with the script', async () => {
    const root = realpathSync(temporaryDirectory());
    file(`${root}/venv/bin/python`);
    file(`${root}/venv/lib/x`);
    const script = file(`${root}/venv/bin/pip`, `#!${root}/venv/bin/python\n`);
    expect((await runtimeOf(script)).binds).toEqual([`${root}/venv/bin`, `${root}/venv/lib`]);
  });

  it('looks the interpreter of env up in the PATH that the guest has', async () => {
    const root = realpathSync(temporaryDirectory());
    file(`${root}/a/tool`);
    const script = file(`${root}/script`, '#!/usr/bin/env -S tool --x\n');
    expect((await runtimeOf(script, { searchPath: `${root}/a:/usr/bin` })).binds).toEqual([`${root}/a/tool`, script]);
    expect((await runtimeOf(script)).binds).toEqual([script]);
  });

  it('comes to an end with a script that is its own interpreter', async () => {
    const root = realpathSync(temporaryDirectory());
    const script = `${root}/script`;
    file(script, `#!${script}\n`);
    expect((await runtimeOf(script)).binds).toEqual([script]);
  });

  it('binds the end of a lone link and makes the link again', async () => {
    const root = realpathSync(temporaryDirectory());
    const real = file(`${root}/store/tool-1`);
    mkdirSync(`${root}/links`);
    symlinkSync('../store/tool-1', `${root}/links/tool`);
    expect(await runtimeOf(`${root}/links/tool`)).toEqual({ binds: [real], links: { [`${root}/links/tool`]: real } });
  });

  it('climbs no further with a link than it is true', async () => {
    const root = realpathSync(temporaryDirectory());
    file(`${root}/v1/bin/tool`);
    mkdirSync(`${root}/front`);
    file(`${root}/front/other`);
    // Only bin is a link: front is a directory of its own.
    symlinkSync('../v1/bin', `${root}/front/bin`);
    expect(await runtimeOf(`${root}/front/bin/tool`)).toEqual({ binds: [`${root}/v1/bin`], links: { [`${root}/front/bin`]: `${root}/v1/bin` } });
  });

  it('follows a software directory that is a link only to another one of the same prefix', async () => {
    const root = realpathSync(temporaryDirectory());
    const tool = file(`${root}/opt/bin/tool`);
    file(`${root}/elsewhere/secret`);
    file(`${root}/opt/lib/x.so`);
    symlinkSync('lib', `${root}/opt/lib64`);
    symlinkSync('../elsewhere', `${root}/opt/libexec`);
    symlinkSync('/proc', `${root}/opt/include`);
    expect(await runtimeOf(tool)).toEqual({
      binds: [`${root}/opt/bin`, `${root}/opt/lib`],
      links: { [`${root}/opt/lib64`]: `${root}/opt/lib` },
    });
  });
});

describe('a virtual environment of Python', () => {
  it('shows its software, its settings and the link to the system', async (context) => {
    needs(context, existsSync('/usr/bin/python3') ? null : '/usr/bin/python3 (Debian package python3)');
    const root = realpathSync(temporaryDirectory());
    execFileSync('/usr/bin/python3', ['-m', 'venv', '--without-pip', `${root}/venv`]);
    const { binds } = await runtimeOf(`${root}/venv/bin/python`);
    expect(binds).toEqual(['bin', 'include', 'lib', 'pyvenv.cfg'].map((name) => `${root}/venv/${name}`));
  });
});
