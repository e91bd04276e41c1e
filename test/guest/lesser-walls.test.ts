/** Functions where user namespaces are refused, for real: the harness lies on the host's file system, the channel is among others' connections. */
import { readdirSync } from 'node:fs';

import { execa } from 'execa';
import { describe, expect, it } from 'vitest';

import type { GuestAnswer } from '../../src/index.js';
import { findDeno } from '../../src/guest/find-deno.js';
import { alone, own, requiresLandlock } from '../escape/support/alone.js';
import { MAIN } from '../cli/cli.js';
import { patience } from '../support/lane.js';
import { temporaryDirectory } from '../support/temporary.js';
import { runtimes } from './support/executors.js';

const SOURCE = `export default async (n: number) => {
  console.log('seen');
  let read = 'read';
  try { read = (await import('node:fs')).readFileSync('/etc/hostname', 'utf8') } catch { read = 'held' }
  return [n + 1, read];
}`;

async function evaluate(runtime: string, tmpdir: string, ...flags: string[]): Promise<GuestAnswer> {
  const [command = '', ...args] = [...alone, process.execPath, MAIN, 'eval', '--runtime', runtime, '--input', '1', '--json', ...flags];
  const env = { PATH: process.env['PATH'], HOME: '/', TMPDIR: tmpdir, DENO_BIN: findDeno() };
  const { stdout, stderr } = await execa(command, args, { env, extendEnv: false, reject: false, input: SOURCE });
  expect(stdout, stderr).not.toBe('');
  return JSON.parse(stdout) as GuestAnswer;
}

describe.each(runtimes)('where there are no more user namespaces, a function on %s', (runtime) => {
  it('runs in best effort behind what there is, and leaves nothing', { timeout: patience(30_000) }, async (context) => {
    requiresLandlock(context);
    const directory = temporaryDirectory();
    own(directory);
    const answer = await evaluate(runtime, directory, '--best-effort');
    expect(answer).toMatchObject({ ok: true, output: [2, 'held'], logs: ['log: seen'] });
    expect(answer.enforcement).toMatchObject({ filesystem: { status: 'enforced' }, syscalls: { status: 'enforced' }, network: { status: 'unavailable' } });
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is refused otherwise, with the reason', { timeout: patience(30_000) }, async (context) => {
    requiresLandlock(context);
    const answer = await evaluate(runtime, '/tmp');
    expect(answer.ok).toBe(false);
    expect(answer.code).toMatch(/^(CGROUP_|user-namespaces-)/);
  });
});
