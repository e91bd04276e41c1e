import { tmpdir } from 'node:os';

import { beforeEach, describe, expect, it } from 'vitest';

import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { cli, MAIN, shell } from './cli.js';

// Nothing of this depends on the kernel, and each takes a second there.
beforeEach((context) => belongsHere(context, !whereAmI().uml, 'outside of User-Mode Linux'));

describe('what was typed wrongly is 125, and the message says what to type', () => {
  it.each<[string, string[], RegExp]>([
    ['an unknown flag', ['run', '--timout', '5s', '--', 'true'], /unknown option '--timout'[^]*--timeout/],
    ['an unknown flag of doctor', ['doctor', '--jsn'], /unknown option '--jsn'[^]*--json/],
    ['no unit', ['run', '--timeout', '5', '--', 'true'], /--timeout.*type 5s or 5ms/],
    ['no unit of size', ['run', '--memory', '256', '--', 'true'], /--memory.*type 256M/],
    ['a flag as a path', ['run', '--read', '--', 'true'], /--read.*looks like a flag/],
    ['no value', ['run', '--timeout'], /--timeout.*argument missing/],
    ['no command', ['run', '--timeout', '5s'], /no command.*ringfence run -- node script\.js/],
    ['a command without run', ['node', "it's.js"], /no command "node".*type: ringfence run -- node 'it'\\''s\.js'/],
    ['another network', ['run', '--network', 'some', '--', 'true'], /--network.*none, host/],
    ['a variable that is not set', ['run', '--env', 'NOT_SET_ANYWHERE', '--', 'true'], /type --env NOT_SET_ANYWHERE=VALUE/],
    ['a grace that is too long', ['run', '--grace', '5s', '--timeout', '1s', '--', 'true'], /--grace must be shorter than --timeout: it comes on top/],
    ['every host', ['run', '--allow', '*', '--', 'true'], /--allow \("\*"\) would allow every host; name them, or use --network host\n/],
    ['every host, to a function', ['eval', '--runtime', 'node', '--net', '*', MAIN], /would allow every host; name them\n/],
    ['more output than one document holds', ['run', '--json', '--max-stdout', '1G', '--', 'true'], /--max-stdout must be at most \d+ with --json/],
    ['an empty directory inside of what is granted', ['run', '--no-cwd', '--write', tmpdir(), '--', 'true'], /--write \(.*\) must not contain os\.tmpdir\(\) \(.*\) with --no-cwd\n/],
    ['no time at all', ['run', '--timeout', '0', '--', 'true'], /--timeout must be a positive/],
    ['a path that is not there', ['run', '--read', '/no/such/path', '--', 'true'], /--read \(\/no\/such\/path\) must exist/],
    ['a directory that is not there', ['run', '--cwd', '/no/such/path', '--', 'true'], /--cwd \(\/no\/such\/path\) must exist/],
    ['a signal that is none', ['run', '--shutdown-signal', 'KABOOM', '--', 'true'], /SIGTERM/],
    ['an empty command', ['run', '--', ''], /the command must be a non-empty string/],
  ])('%s', async (_, args, message) => {
    const { exitCode, stdout, stderr } = await cli(args, { env: { NOT_SET_ANYWHERE: undefined } });
    expect({ exitCode, stdout }).toEqual({ exitCode: 125, stdout: '' });
    expect(stderr).toMatch(/^ringfence: /);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n {4}at /);
  });
});

it('a current directory that is gone is named', async () => {
  const { exitCode, stderr } = await shell('gone=$(mktemp -d) && cd "$gone" && rmdir "$gone" && exec $RINGFENCE run -- true');
  expect(exitCode).toBe(125);
  expect(stderr).toMatch(/^ringfence: the current directory cannot be used \(ENOENT\).*\n$/);
});

describe('help', () => {
  it.each<[string, string[]]>([
    ['no word at all', []],
    ['--help', ['--help']],
    ['help', ['help']],
  ])('%s: names every command, and teaches by example', async (_, args) => {
    const { exitCode, stdout, stderr } = await cli(args);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/^ {2}run /m);
    expect(stdout).toMatch(/^ {2}doctor /m);
    expect(stdout).toMatch(/^ {2}ringfence run -- \S+/m);
  });

  it('of run has every flag, the default of each limit, the exit codes, and examples', async () => {
    const { exitCode, stdout } = await cli(['run', '--help']);
    expect(exitCode).toBe(0);
    for (const [flag, preset] of [['timeout', '60s'], ['memory', '512M'], ['pids', '128'], ['tmp', '256M'], ['open-files', '1024']]) {
      expect(stdout).toMatch(new RegExp(`^ {2}--${flag} [^]*?\\(default:\\s+${preset}\\)`, 'm'));
    }
    for (const code of [124, 125, 126, 127, 137]) expect(stdout).toContain(String(code));
    expect(stdout.match(/^ {2}ringfence run /gm)?.length).toBeGreaterThan(4);
  });

  it('of doctor says what its exit code means', async () => {
    expect((await cli(['doctor', '--help'])).stdout).toContain('0 if strict runs are possible');
  });

  it('examples are commands that parse', async () => {
    const { stdout } = await cli(['run', '--help']);
    const flags = new Set(stdout.match(/^ {2}(--[a-z-]+)/gm)?.map((flag) => flag.trim()));
    const used = stdout.split('\n').filter((line) => line.startsWith('  ringfence run')).flatMap((line) => line.split(' -- ')[0]?.match(/--[a-z-]+/g) ?? []);
    expect(used.length).toBeGreaterThan(4);
    for (const flag of used) expect(flags).toContain(flag);
  });
});

it('--version is that of the package', async () => {
  expect(await cli(['--version'])).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\S*\n$/) as string });
});
