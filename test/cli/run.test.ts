import { existsSync, mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { whereAmI } from '../support/lane.js';
import { temporaryDirectory } from '../support/temporary.js';
import { cli, json, shell } from './cli.js';

const sh = (flags: string[], script: string, options = {}) => cli(['run', ...flags, '--', 'sh', '-c', script], options);

describe('exit codes', () => {
  it.each([0, 1, 42, 255])('%i is the command\'s own, without a word', async (code) => {
    expect(await sh([], `exit ${code}`)).toEqual({ exitCode: code, signal: undefined, stdout: '', stderr: '' });
  });

  it('128+n for a command that died of signal n', async () => {
    const { exitCode, stderr } = await sh([], 'kill -SEGV $$');
    expect(exitCode).toBe(139);
    expect(stderr).toBe('ringfence: the command died of SIGSEGV\n');
  });

  it('124 for a timeout, with the output that came before it', async () => {
    const { exitCode, stdout, stderr } = await sh(['--timeout', '700ms', '--grace', '100ms'], 'echo early; trap "" TERM; sleep 60');
    expect({ exitCode, stdout }).toEqual({ exitCode: 124, stdout: 'early\n' });
    expect(stderr).toMatch(/^ringfence: timeout: .*--timeout 700ms.*\n$/);
  });

  it('137 for out of memory, and says which flag', async () => {
    const { exitCode, stderr } = await cli(['run', '--memory', '32M', '--', 'sh', '-c', 'head -c 300M /dev/zero | tail']);
    expect(exitCode).toBe(137);
    expect(stderr).toMatch(/ringfence: out of memory: .*--memory 32M; raise it with --memory 64M/);
  });

  it('152 for the cpu limit', async () => {
    const { exitCode, stderr } = await sh(['--cpu-time', '300ms'], 'while :; do :; done');
    expect(exitCode).toBe(128 + 24);
    expect(stderr).toContain('--cpu-time 300ms');
  });

  it('127 and 126 for what is not there or cannot be executed', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'text'), 'no program', { mode: 0o644 });
    const missing = await cli(['run', '--', 'no-such-command'], { env: { PATH: '/usr/bin:/bin' } });
    expect(missing.exitCode).toBe(127);
    expect(missing.stderr).toMatch(/^ringfence: .*ENOENT/);
    const text = await cli(['run', '--', './text'], { cwd: directory });
    expect(text.exitCode).toBe(126);
    expect(text.stderr).toMatch(/chmod 755/);
  });

  it('125 when the sandbox cannot be set up, with the way to the doctor', async () => {
    const { exitCode, stdout, stderr } = await sh([], 'echo ran', { env: { RINGFENCE_CGROUP: '/no/such/cgroup' } });
    expect({ exitCode, stdout }).toEqual({ exitCode: 125, stdout: '' });
    expect(stderr).toContain('RINGFENCE_CGROUP');
    expect(stderr).toContain('run "ringfence doctor"');
  });
});

describe('the command', () => {
  it('gets everything after "--" verbatim', async () => {
    const args = ['--', '--json', '-h', '', ' a  b ', '$HOME', '*', "'", '"', 'ü\n'];
    const { stdout } = await cli(['run', '--', 'printf', '[%s]', ...args]);
    expect(stdout).toBe(args.map((each) => `[${each}]`).join(''));
  });

  it('needs no "--" when it comes first, and keeps its own flags', async () => {
    expect((await cli(['run', '--timeout', '9s', 'printf', '[%s]', '--timeout', '5', '--help'])).stdout).toBe('[--timeout][5][--help]');
  });

  it('may be a path relative to the current directory', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'own.sh'), '#!/bin/sh\necho "own $1"\n', { mode: 0o755 });
    expect(await cli(['run', '--', './own.sh', 'word'], { cwd: directory })).toMatchObject({ exitCode: 0, stdout: 'own word\n' });
  });
});

describe('limits reach the kernel', () => {
  it('--pids, and a command that fails at it is explained', async () => {
    const { exitCode, stderr } = await sh(['--pids', '6'], 'for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait');
    expect(exitCode).not.toBe(0);
    expect(stderr).toMatch(/ringfence: process limit: .*--pids 6; raise it with --pids 12/);
    expect((await sh(['--pids', '20'], 'for i in 1 2 3 4 5 6 7 8 9; do sleep 0 & done; wait')).exitCode).toBe(0);
  });

  it('--open-files, --file-size, --tmp', async () => {
    expect((await sh(['--open-files', '17'], 'ulimit -n')).stdout).toBe('17\n');
    const grown = await sh(['--file-size', '1M'], 'exec head -c 2M /dev/zero > /tmp/file');
    expect(grown.exitCode).toBe(128 + 25);
    expect(grown.stderr).toContain('--file-size');
    const full = await sh(['--tmp', '1M'], 'head -c 3M /dev/zero > /tmp/file');
    expect(full.exitCode).toBe(1);
    expect(full.stderr).toContain('No space left');
    expect((await sh(['--tmp', '8M', '--file-size', '8M'], 'head -c 3M /dev/zero > /tmp/file')).exitCode).toBe(0);
  });

  it('--cpus', async () => {
    expect(await json(['--cpus', '0.5', '--', 'true'])).toMatchObject({ outcome: 'exit', enforcement: { cpu: { status: 'enforced' } } });
    expect(await json(['--', 'true'])).toMatchObject({ outcome: 'exit', enforcement: { cpu: { status: 'disabled' } } });
  });

  it('--max-stdout and --max-stderr cut to the byte', async () => {
    const out = await sh(['--max-stdout', '10B'], 'printf 123456789012345; sleep 20');
    expect(out).toMatchObject({ exitCode: 128 + 25, stdout: '1234567890' });
    expect(out.stderr).toMatch(/ringfence: output limit: .*--max-stdout 10B/);
    const err = await sh(['--max-stderr', '5B'], 'printf 1234567890 >&2; sleep 20');
    expect(err.exitCode).toBe(128 + 25);
    expect(err.stderr).toMatch(/^12345ringfence: output limit: .*--max-stderr 5B/);
  });

  it('--shutdown-signal and --grace', async () => {
    const script = 'trap "echo got INT; exit 0" INT; sleep 60 & wait';
    const { exitCode, stdout } = await sh(['--timeout', '3s', '--grace', '2s', '--shutdown-signal', 'int'], script);
    expect({ exitCode, stdout }).toEqual({ exitCode: 124, stdout: 'got INT\n' });
  });

  it('--node-heap', async () => {
    const { stdout } = await cli(['run', '--node-heap', '64M', '--', process.execPath, '-p', 'process.env.NODE_OPTIONS']);
    expect(stdout).toContain('--max-old-space-size=64');
  });
});

describe('what it sees', () => {
  function place(): { here: string; other: string } {
    const root = temporaryDirectory();
    const [here, other] = [join(root, 'here'), join(root, 'other')];
    for (const directory of [here, other]) {
      mkdirSync(directory);
      writeFileSync(join(directory, 'file'), 'content\n');
    }
    return { here, other };
  }

  it('the current directory, read-only, and nothing beside it', async () => {
    const { here, other } = place();
    const { stdout, stderr } = await sh([], `pwd; cat file; touch new || echo refused; cat ${other}/file || echo unseen`, { cwd: here });
    expect(stdout).toBe(`${here}\ncontent\nrefused\nunseen\n`);
    expect(stderr).toMatch(/Read-only file system/);
    expect(existsSync(join(here, 'new'))).toBe(false);
  });

  it('--read by a relative path', async () => {
    const { here, other } = place();
    const { stdout } = await sh(['--read', '../other'], `cat ${other}/file; touch ${other}/new || echo refused`, { cwd: here });
    expect(stdout).toBe('content\nrefused\n');
  });

  it('--write by a relative path, with the caller as the owner of what it makes', async () => {
    const { here, other } = place();
    const { exitCode } = await sh(['--write', '../other', '--write', 'file'], `echo new > ${other}/new; echo more >> file`, { cwd: here });
    expect(exitCode).toBe(0);
    expect(readFileSync(join(here, 'file'), 'utf8')).toBe('content\nmore\n');
    expect(statSync(join(other, 'new')).uid).toBe(process.getuid?.());
  });

  it.each(['.', '..'])('--write %s makes the current directory writable', async (granted) => {
    const { here } = place();
    expect((await sh(['--write', granted], 'echo new > new', { cwd: here })).exitCode).toBe(0);
    expect(readFileSync(join(here, 'new'), 'utf8')).toBe('new\n');
  });

  it('a --write that leads to the current directory by a link makes it writable too', async () => {
    const { here, other } = place();
    symlinkSync(here, join(other, 'link'));
    expect((await sh(['--write', join(other, 'link')], 'echo new > new', { cwd: here })).exitCode).toBe(0);
  });

  it('--cwd starts elsewhere, read-only; --no-cwd in an empty directory', async () => {
    const { here, other } = place();
    expect((await sh(['--cwd', '../other'], 'pwd; touch x || echo refused', { cwd: here })).stdout).toBe(`${other}\nrefused\n`);
    const own = await sh(['--no-cwd'], `ls -A; touch x && echo made; ls ${here} || echo unseen`, { cwd: here });
    expect(own.stdout).toBe('made\nunseen\n');
  });

  it.each(['TMPDIR', 'HOME'])('the files of the system, where %s lies among them as well', async (name) => {
    const { stdout, stderr } = await sh(['--env', `${name}=/usr/lib`], `ls -d /usr/lib/os-release; touch "$${name}/new" || echo refused`);
    expect({ stdout, stderr }).toEqual({ stdout: '/usr/lib/os-release\nrefused\n', stderr: expect.stringContaining('Read-only') as string });
  });

  it('an empty directory of its own only where there can be one', async () => {
    const { exitCode, stderr } = await sh(['--no-cwd'], 'true', { env: { TMPDIR: '/usr/lib' } });
    expect(exitCode).toBe(125);
    expect(stderr).toBe('ringfence: --cwd (absent) must be given while os.tmpdir() is /usr/lib, where the sandbox can make none\n');
  });

  it('variables that were passed, and no others', async () => {
    const env = { PASSED: 'by name', SECRET: 'not passed', OTHER: 'old' };
    const { stdout } = await cli(['run', '--env', 'PASSED', '--env', 'OTHER=new=er', '--env', 'EMPTY=', '--', 'env'], { env });
    const lines = stdout.split('\n');
    expect(lines).toEqual(expect.arrayContaining(['PASSED=by name', 'OTHER=new=er', 'EMPTY=']));
    expect(stdout).not.toContain('SECRET');
  });

  it('a network of its own, unless --network host', async () => {
    const host = readlinkSync('/proc/self/ns/net');
    expect((await sh([], 'readlink /proc/self/ns/net')).stdout.trim()).not.toBe(host);
    expect((await sh(['--network', 'host'], 'readlink /proc/self/ns/net')).stdout.trim()).toBe(host);
  });

  it('the network of this machine where SANDBOX_DISABLE_NETNS_FIREWALL=1 takes the fence down, and says so', async () => {
    const { stdout, stderr } = await sh([], 'readlink /proc/self/ns/net', { env: { SANDBOX_DISABLE_NETNS_FIREWALL: '1' } });
    expect(stdout.trim()).toBe(readlinkSync('/proc/self/ns/net'));
    expect(stderr).toBe('ringfence: no network fence: SANDBOX_DISABLE_NETNS_FIREWALL=1 is set\n');
  });

  it('with --best-effort it runs without a fence that cannot be had, and says so', async () => {
    const { exitCode, stdout, stderr } = await sh(['--best-effort'], 'echo ran', { env: { RINGFENCE_CGROUP: '/no/such/cgroup' } });
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'ran\n' });
    expect(stderr).toMatch(/^ringfence: best effort: ran WITHOUT .*memory \(CGROUP_OVERRIDE_INVALID\)/);
  });
});

describe('--json', () => {
  const FIELDS = [
    'outcome', 'exitCode', 'signal', 'stdout', 'stderr', 'stdoutTruncated', 'stderrTruncated', 'durationMs', 'cwd',
    'cwdOwnedBySandbox', 'nodeHeapMbApplied', 'errorMessage', 'error', 'usage', 'enforcement', 'connections', 'connectionsOmitted',
  ];

  it('prints exactly one document, and nothing else anywhere', async () => {
    const { exitCode, stdout, stderr } = await sh(['--json'], 'echo out; echo err >&2; exit 3');
    expect({ exitCode, stderr }).toEqual({ exitCode: 3, stderr: '' });
    expect(stdout.endsWith('\n')).toBe(true);
    expect(stdout.trim()).not.toContain('\n');
    const result = JSON.parse(stdout) as Record<string, unknown>;
    expect(Object.keys(result).sort()).toEqual([...FIELDS].sort());
    expect(result).toMatchObject({ outcome: 'exit', exitCode: 3, stdout: 'out\n', stderr: 'err\n', connections: [] });
    for (const fence of ['privileges', 'identity', 'filesystem', 'network', 'pids', 'memory']) {
      expect(result['enforcement']).toMatchObject({ [fence]: { status: 'enforced' } });
    }
  });

  it('has the same shape when nothing could be started', async () => {
    const { exitCode, stdout, stderr } = await cli(['run', '--json', '--', 'no-such-command'], { env: { PATH: '/usr/bin:/bin' } });
    expect({ exitCode, stderr }).toEqual({ exitCode: 127, stderr: '' });
    const result = JSON.parse(stdout) as Record<string, unknown>;
    expect(Object.keys(result).sort()).toEqual([...FIELDS].sort());
    expect(result).toMatchObject({ outcome: 'spawn-error', error: { code: 'command-not-found' } });
  });

  it('passes standard input through as well', async () => {
    expect(await json(['--', 'tr', 'a-z', 'A-Z'], { input: 'word' })).toMatchObject({ stdout: 'WORD' });
  });

  it('holds output far above a pipe\'s size', async () => {
    const { stdout } = await json(['--', 'head', '-c', '3M', '/dev/zero']);
    expect(stdout).toHaveLength(3 * 2 ** 20);
  });
});

it('runs as whom it should: never as root', async () => {
  const { stdout } = await sh([], 'id -u; cat /proc/self/uid_map');
  const [uid, map = ''] = stdout.trim().split('\n');
  expect(uid).not.toBe('0');
  const outside = map.trim().split(/\s+/)[1];
  expect(outside).not.toBe('0');
  if (!whereAmI().root) expect(Number(outside)).toBe(process.getuid?.());
});

it('scripts can read the exit code and the streams as from any command', async () => {
  const { stdout, exitCode } = await shell('$RINGFENCE run -- sh -c "cat; exit 7" < /proc/self/comm; echo "code $?"');
  expect({ stdout, exitCode }).toEqual({ stdout: 'sh\ncode 7\n', exitCode: 0 });
});
