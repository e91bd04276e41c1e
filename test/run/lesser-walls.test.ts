/** Runs where user namespaces are refused, for real; what they hold against is in test/escape/alone.test.ts. */
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { execa } from 'execa';
import { describe, expect, it } from 'vitest';

import type { SandboxOptions, SandboxResult } from '../../src/index.js';
import { alone, own, requiresLandlock } from '../escape/support/alone.js';
import { childHost, hostEnvironment } from '../escape/support/child-host.js';
import { cli, MAIN } from '../cli/cli.js';
import { compileFixture } from '../support/compile.js';
import { patience, whereAmI } from '../support/lane.js';
import { temporaryDirectory } from '../support/temporary.js';

const lane = whereAmI();

async function run(through: string[], options: Omit<SandboxOptions, 'timeoutMs'>): Promise<SandboxResult> {
  const host = childHost({ runs: [{ isolation: 'best-effort', timeoutMs: patience(30_000), ...options }] });
  const [command = '', ...args] = [...through, host.command, ...host.args];
  const { stdout, stderr } = await execa(command, args, { env: { ...hostEnvironment(), HOME: '/', TMPDIR: '/tmp' }, extendEnv: false, reject: false });
  expect(stdout, stderr).not.toBe('');
  return JSON.parse(stdout) as SandboxResult;
}

/** As a container runtime has it by default: no capability to mount, clone3 hidden, namespaces refused. */
function contained(): string[] {
  const filter = compileFixture('escape/container-filter.c', { flags: [] });
  return [...(lane.root ? ['setpriv', '--bounding-set=-sys_admin,-net_admin,-sys_ptrace', '--inh-caps=-all'] : []), filter];
}

const places: [string, () => string[]][] = [
  ['where there are no more user namespaces', () => alone],
  ['under the filter of a container', contained],
];

describe.each(places)('%s', (_, through) => {
  it('says what holds and what does not', async (context) => {
    requiresLandlock(context);
    const { outcome, enforcement, errorMessage } = await run(through(), { command: 'true', args: [] });
    expect(outcome, errorMessage).toBe('exit');
    expect(enforcement).toMatchObject({
      privileges: { status: 'enforced' },
      filesystem: { status: 'enforced', by: expect.stringMatching(/^landlock ABI \d+ \(other paths can be looked up \(stat, chdir\), not opened; /) },
      network: { status: 'enforced', by: expect.stringMatching(/^seccomp \(no socket\)/) },
      syscalls: { status: 'enforced' },
      landlock: { status: 'enforced' },
    });
    for (const fence of ['pids', 'memory'] as const) expect(enforcement[fence].by).toMatch(/^cgroup-v[12]|^CGROUP_|only process-limit/);
  });

  it('has a home, a place for temporary files and a working directory, and leaves nothing of them', async (context) => {
    requiresLandlock(context);
    const before = readdirSync('/tmp').filter((name) => name.startsWith('ringfence-'));
    const script = 'for at in "$HOME" "$TMPDIR" .; do echo "$at" > "$at/file" && cat "$at/file"; done';
    const { stdout, cwd, stderr } = await run(through(), { command: 'sh', args: ['-c', script], env: { HOME: '/nowhere' } });
    const [home = '', temporary = '', here] = stdout.trim().split('\n');
    expect([path.basename(home), path.basename(temporary), here], stderr).toEqual(['home', 'tmp', '.']);
    for (const directory of [home, temporary, cwd]) expect(existsSync(directory)).toBe(false);
    const after = readdirSync('/tmp').filter((name) => name.startsWith('ringfence-'));
    expect(after.filter((name) => !before.includes(name) && cwd.endsWith(name))).toEqual([]);
  });
});

describe('a run without namespaces', () => {
  const deno = path.join(path.dirname(createRequire(import.meta.url).resolve('deno/package.json')), `../@deno/linux-${process.arch}-glibc/deno`);
  const GIT = 'git init -q r && cd r && git config user.email a@b && git config user.name n && echo a > a && git add a && git commit -qm m && cd .. && git clone -q r s && cat s/a';
  it.each<[string, string, string[], string]>([
    ['Node', process.execPath, ['-e', 'new (require("worker_threads").Worker)("console.log(6*7)", { eval: true })'], '42'],
    ['Node in a shell', 'sh', ['-c', `"${process.execPath}" -p 6*7`], '42'],
    ['Deno', deno, ['eval', '--no-lock', 'console.log(6*7, Deno.readDirSync(".")[Symbol.iterator]().next().done)'], '42 true'],
    ['Python', '/usr/bin/python3', ['-c', 'import subprocess, tempfile\nprint(subprocess.check_output(["echo", "42"]).decode().strip(), len(tempfile.mkdtemp()) > 0)'], '42 True'],
    ['git', 'sh', ['-c', GIT], 'a'],
    ['npm and tar', 'sh', ['-c', 'npm init -y > init && npm pack --silent > name && tar xf *.tgz && ls package'], 'init\nname\npackage.json'],
  ])('runs %s', async (_, command, args, output) => {
    const { stdout, stderr, errorMessage } = await run(alone, { command, args });
    expect(stdout.trim(), `${errorMessage} ${stderr}`).toBe(output);
  });

  it('removes directories that are too deep for a path, and those that nobody may read', async (context) => {
    requiresLandlock(context);
    const program = 'mkdir "shut", 0; mkdir "s"; mkdir "s/t"; mkdir "s/t/u", 0; for (1..2000) { mkdir "d" x 20; chdir "d" x 20 } print "made"';
    const { stdout, cwd, stderr } = await run(alone, { command: 'perl', args: ['-e', program] });
    expect(stdout, stderr).toBe('made');
    expect(existsSync(cwd)).toBe(false);
  });

  it('refuses a read-only grant in a writable one, which no rule of Landlock can hold', async (context) => {
    requiresLandlock(context);
    const directory = temporaryDirectory();
    const inner = path.join(directory, 'inner');
    mkdirSync(inner);
    own(directory, inner);
    const { outcome, error } = await run(alone, { command: 'true', args: [], filesystem: { write: [directory], read: [inner] } });
    expect({ outcome, code: error?.code }).toEqual({ outcome: 'spawn-error', code: 'NESTED_READ_ONLY_GRANT' });
  });

  it('lets a writable grant be written to, and renames between its directories', async (context) => {
    requiresLandlock(context);
    const directory = temporaryDirectory();
    own(directory);
    const script = 'mkdir a b && echo word > a/file && mv a/file b/file && ln b/file a/other && : > a/other && rm -r a && ls b';
    const { stdout, stderr } = await run(alone, { command: 'sh', args: ['-c', script], cwd: directory });
    expect(stdout, stderr).toBe('file\n');
  });

  it('has the host as its network where that was asked for, and still none of its unix sockets', async (context) => {
    requiresLandlock(context);
    const script = 'import socket\nsocket.socket()\ntry:\n  socket.socket(socket.AF_UNIX)\nexcept OSError as e:\n  print(e.errno)';
    const { stdout, stderr, enforcement } = await run(alone, { command: '/usr/bin/python3', args: ['-c', script], network: 'host' });
    expect(stdout, stderr).toBe('1\n');
    expect(enforcement.network).toEqual({ status: 'disabled', by: "network: 'host'" });
  });
});

it('doctor shows the lesser walls where there are no namespaces', async (context) => {
  requiresLandlock(context);
  const [command = '', ...args] = [...alone, process.execPath, MAIN, 'doctor'];
  const { stdout, exitCode } = await execa(command, args, { reject: false });
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/^ +filesystem +enforced +landlock ABI \d+ \(/m);
  expect(stdout).toMatch(/^ +network +enforced +seccomp \(no socket\), landlock/m);
  expect(stdout).toMatch(/^ +identity +MISSING +user-namespaces-disabled/m);
  // The control: with namespaces it is these that hold.
  expect((await cli(['doctor'])).stdout).toMatch(/^ +filesystem +enforced +mntns, pivot_root$/m);
});
