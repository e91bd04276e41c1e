import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { execa } from 'execa';
import { describe, expect, it } from 'vitest';

import { temporaryDirectory } from '../support/temporary.js';
import { cli, MAIN } from './cli.js';

function fileOf(source: string, name = 'fn.ts'): string {
  const path = join(temporaryDirectory(), name);
  writeFileSync(path, source);
  return path;
}

const evaluate = (source: string, args: string[] = [], options = {}) => cli(['eval', '--runtime', 'node', ...args, fileOf(source)], options);

describe('ringfence eval', () => {
  it.each(['deno', 'node'])('runs a file of TypeScript in %s: JSON in, JSON out', async (runtime) => {
    const file = fileOf('interface In { a: number }\nexport default ({ a }: In) => ({ twice: a * 2 })');
    const { exitCode, stdout, stderr } = await cli(['eval', '--runtime', runtime, '--input', '{"a":1}', file]);
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: '{"twice":2}\n', stderr: '' });
  });

  it('runs in Deno unless told otherwise', async () => {
    const { stdout } = await cli(['eval', fileOf('export default () => typeof Deno')]);
    expect(stdout).toBe('"object"\n');
  });

  it.each([[[]], [['-']]])('takes the function from standard input with %j', async (words) => {
    const { exitCode, stdout } = await cli(['eval', '--runtime', 'node', '--input', '21', ...words], { input: 'export default (n) => n * 2' });
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '42\n' });
  });

  it('takes the input from a file or from standard input', async () => {
    const input = fileOf('[1,2]', 'input.json');
    expect(await evaluate('export default (list) => list.length', ['--input-file', input])).toMatchObject({ exitCode: 0, stdout: '2\n' });
    expect(await evaluate('export default (list) => list.length', ['--input-file', '-'], { input: '[1,2,3]' })).toMatchObject({ exitCode: 0, stdout: '3\n' });
  });

  it('prints null for a function that returns nothing', async () => {
    expect(await evaluate('export default () => {}')).toEqual({ exitCode: 0, signal: undefined, stdout: 'null\n', stderr: '' });
  });

  it('shows the console on standard error while it runs, without what a terminal would act upon', async () => {
    const source = "export default () => new Promise((resolve) => { console.log('first \\u001b[2J'); setTimeout(resolve, 3000); })";
    const child = execa(process.execPath, [MAIN, 'eval', '--runtime', 'node', fileOf(source)], { reject: false });
    const first = await new Promise<string>((resolve) => child.stderr.once('data', (chunk: Buffer) => resolve(chunk.toString())));
    expect(child.exitCode).toBeNull();
    expect(first).toBe('log: first \\x1b[2J\n');
    expect((await child).exitCode).toBe(0);
  });

  it('gives secrets by variable or value', async () => {
    const source = 'export default () => [__secrets.A, __secrets.B]';
    expect(await evaluate(source, ['--secret', 'A', '--secret', 'B=two'], { env: { A: 'one' } })).toMatchObject({ exitCode: 0, stdout: '["one","two"]\n' });
  });

  it('--json prints the whole answer, whatever it is', async () => {
    const good = await evaluate('export default () => { console.log(1); return 2 }', ['--json']);
    expect(JSON.parse(good.stdout)).toMatchObject({ ok: true, output: 2, logs: ['log: 1'], enforcement: { network: { status: 'enforced' } }, connections: [] });
    const bad = await evaluate("export default () => { throw new Error('no') }", ['--json']);
    expect(bad.exitCode).toBe(1);
    expect(JSON.parse(bad.stdout)).toMatchObject({ ok: false, error: 'no', code: 'guest-error' });
  });
});

describe('exit codes of ringfence eval', () => {
  it.each<[number, string, string, string[], RegExp]>([
    [1, 'an error', "export default () => { throw new Error('mine') }", [], /^ringfence: mine\n$/],
    [1, 'an exit', 'export default () => process.exit(0)', [], /^ringfence: the function's process ended/],
    [124, 'a timeout', 'export default () => { for (;;); }', ['--timeout', '1s'], /^ringfence: wall-time exceeded \(1000ms\)\n$/],
    [137, 'out of memory', 'export default () => { const kept = []; for (;;) kept.push(Buffer.alloc(1 << 20, 1)) }', ['--memory', '16M', '--timeout', '20s'], /memory limit exceeded/],
    [125, 'a host that is not allowed', 'export default () => 1', ['--net', '127.0.0.1'], /^ringfence: egress blocked: /],
  ])('%i for %s', async (code, _, source, args, message) => {
    const { exitCode, stdout, stderr } = await evaluate(source, args);
    expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: '' });
    expect(stderr).toMatch(message);
  });

  it('127 for a runtime that is not there, with what to do', async () => {
    const { exitCode, stderr } = await cli(['eval', fileOf('export default () => 1')], { env: { DENO_BIN: '/no/such/deno' } });
    expect(exitCode).toBe(127);
    expect(stderr).toMatch(/DENO_BIN.*--runtime node/);
  });

  it('130 for Ctrl-C, and nothing is left of it', async () => {
    const child = execa(process.execPath, [MAIN, 'eval', '--runtime', 'node', fileOf("export default () => new Promise(() => { console.log('up'); setInterval(() => {}, 1000) })"), '--timeout', '30s'], { reject: false });
    await new Promise((resolve) => child.stderr.once('data', resolve));
    child.kill('SIGINT');
    expect((await child).exitCode).toBe(130);
  });

  it.each<[string, string[], RegExp]>([
    ['input that is no JSON', ['--input', '{a:1}', 'x.ts'], /x\.ts|--input is no JSON/],
    ['a file that is not there', ['/no/such/file.ts'], /cannot read the function from \/no\/such\/file\.ts: ENOENT/],
    ['both from standard input', ['--input-file', '-'], /cannot both come from standard input/],
    ['two inputs', ['--input', '1', '--input-file', 'x', 'y.ts'], /cannot be used with/],
    ['too much time', ['--timeout', '31s', 'x.ts'], /--timeout must be 1ms to 30s/],
    ['too little memory', ['--memory', '8M', 'x.ts'], /--memory must be 16M to 1024M/],
    ['another runtime', ['--runtime', 'bun', 'x.ts'], /deno, node/],
    ['a secret that is not set', ['--secret', 'NOT_SET_ANYWHERE', 'x.ts'], /type --secret NOT_SET_ANYWHERE=VALUE/],
  ])('125 for %s', async (_, args, message) => {
    const { exitCode, stdout, stderr } = await cli(['eval', ...args], { env: { NOT_SET_ANYWHERE: undefined } });
    expect({ exitCode, stdout }).toEqual({ exitCode: 125, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n {4}at /);
  });
});
