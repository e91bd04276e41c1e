import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { execa } from 'execa';
import { describe, expect, it, onTestFinished } from 'vitest';

import { temporaryDirectory } from '../support/temporary.js';
import { cli, MAIN } from './cli.js';

interface Served {
  url: string;
  lines: string[];
  kill(signal: NodeJS.Signals): void;
  ended: Promise<{ exitCode?: number | undefined }>;
}

async function serve(args: string[], env: Record<string, string | undefined> = {}): Promise<Served> {
  const child = execa(process.execPath, [MAIN, 'serve', '--runtime', 'node', '--port', '0', ...args], { reject: false, env, stdin: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines: string[] = [];
  const port = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      lines.push(...chunk.toString().trim().split('\n'));
      const [, found] = /listening on :(\d+)"/.exec(lines.join('\n')) ?? [];
      if (found !== undefined) resolve(found);
    });
    child.on('exit', () => reject(new Error(`it ended: ${lines.join('\n')}`)));
  });
  return { url: `http://127.0.0.1:${port}`, lines, kill: (signal) => void child.kill(signal), ended: child };
}

/** Reads the log up to the line that tells. */
async function portIn(fifo: number): Promise<string> {
  const bytes = Buffer.alloc(4096);
  for (let tries = 0; tries < 1000; tries++) {
    try {
      const [, port] = /listening on :(\d+)/.exec(bytes.toString('utf8', 0, readSync(fifo, bytes))) ?? [];
      if (port !== undefined) return port;
    } catch {
      await sleep(20); // EAGAIN
    }
  }
  throw new Error('it does not say that it listens');
}

function fill(fifo: number): void {
  for (const size of [4096, 1]) {
    try {
      for (;;) writeSync(fifo, Buffer.alloc(size));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}

const run = (url: string, source: string, init: RequestInit = {}) =>
  fetch(`${url}/run`, { method: 'POST', body: JSON.stringify({ source, input: 21, capabilities: { timeoutMs: 20_000 } }), ...init });

describe('ringfence serve', () => {
  it('says once that it listens, answers, and ends with 0 on SIGTERM after what runs is done', async () => {
    const { url, lines, kill, ended } = await serve([]);
    expect(await (await run(url, 'export default (n) => n * 2')).json()).toMatchObject({ ok: true, output: 42 });
    const slow = run(url, "export default () => new Promise((resolve) => setTimeout(() => resolve('done'), 2000))");
    await new Promise((resolve) => setTimeout(resolve, 500));
    kill('SIGTERM');
    expect(await (await slow).json()).toMatchObject({ ok: true, output: 'done' });
    expect((await ended).exitCode).toBe(0);
    const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(messages.filter((each) => each.startsWith('listening on :'))).toHaveLength(1);
    expect(messages.at(-1)).toBe('stopped');
  });

  it('ends at once on the second signal', async () => {
    const { url, kill, ended } = await serve([]);
    const slow = run(url, 'export default () => new Promise(() => setInterval(() => {}, 1000))').catch(() => null);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    kill('SIGINT');
    await new Promise((resolve) => setTimeout(resolve, 300));
    kill('SIGINT');
    expect((await ended).exitCode).toBe(130);
    await slow;
  });

  it('wants the token of SANDBOX_TOKEN', async () => {
    const { url } = await serve([], { SANDBOX_TOKEN: 'abc' });
    expect((await run(url, 'export default () => 1')).status).toBe(401);
    expect((await run(url, 'export default () => 1', { headers: { authorization: 'Bearer abc' } })).status).toBe(200);
  });

  it('serves the page only when it is told to', async () => {
    const [without, with_] = await Promise.all([serve([]), serve(['--page'])]);
    expect((await fetch(without.url)).status).toBe(404);
    const page = await fetch(with_.url);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await page.text()).toContain('<textarea id="source"');
  });

  it('goes on when nobody reads its log any more', async () => {
    const child = execa('sh', ['-c', `exec ${process.execPath} ${MAIN} serve --runtime node --port 0 | head -1`], { reject: false, stdin: 'ignore', detached: true });
    onTestFinished(() => void process.kill(-(child.pid ?? 0), 'SIGKILL'));
    const [, port] = /listening on :(\d+)/.exec(await new Promise<string>((resolve) => child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString())))) ?? [];
    for (let round = 0; round < 3; round++) {
      expect(await (await run(`http://127.0.0.1:${port}`, 'export default (n) => n * 2')).json()).toMatchObject({ output: 42 });
    }
  });

  it.each(['stdout', 'stderr', 'both'] as const)('ends on SIGTERM when nobody reads %s any more', async (gone) => {
    const child = spawn(process.execPath, [MAIN, 'serve', '--port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const [, port] = /listening on :(\d+)/.exec(line.toString()) ?? [];
    expect(await (await run(`http://127.0.0.1:${port}`, 'export default (n) => n * 2')).json()).toMatchObject({ output: 42 });
    if (gone !== 'stderr') child.stdout.destroy();
    if (gone !== 'stdout') child.stderr.destroy();
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it.each([1, 2])('ends on signal %i when its log is not read and the pipe is full', async (signals) => {
    const fifo = path.join(temporaryDirectory(), 'log');
    execFileSync('mkfifo', [fifo]);
    const reader = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
    const writer = openSync(fifo, constants.O_WRONLY);
    onTestFinished(() => [reader, writer].forEach((fd) => closeSync(fd)));
    const child = spawn(process.execPath, [MAIN, 'serve', '--runtime', 'node', '--port', '0'], { stdio: ['ignore', writer, 'ignore'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    const port = await portIn(reader);
    const slow = signals === 1 ? null : run(`http://127.0.0.1:${port}`, 'export default () => new Promise(() => setInterval(() => {}, 1000))').catch(() => null);
    await sleep(500);
    fill(reader);
    for (let signal = 0; signal < signals; signal++) {
      child.kill('SIGTERM');
      await sleep(300);
    }
    expect(await ended).toEqual([signals === 1 ? 0 : 143, null]);
    await slow;
  });

  it.each<[string, string[], Record<string, string>, RegExp]>([
    ['a flag', ['--port', 'x'], {}, /^ringfence: --port must be a whole number from 0 to 65535, not "x"\n$/],
    ['a variable', [], { RINGFENCE_QUEUE: 'x' }, /^ringfence: RINGFENCE_QUEUE must be a whole number/],
    ['an open address without a token', ['--host', '0.0.0.0'], {}, /^ringfence: HOST is 0\.0\.0\.0.*SANDBOX_TOKEN/],
    ['no Deno', ['--deno', '/no/such/deno'], {}, /^ringfence: DENO_BIN is \/no\/such\/deno/],
    ['an address that is not there', ['--host', 'no-such-host.invalid', '--runtime', 'node'], { SANDBOX_TOKEN: 'abc' }, /^ringfence: cannot listen: .*HOST/],
  ])('%s that cannot be used is 125, and named', async (_, args, env, message) => {
    const { exitCode, stdout, stderr } = await cli(['serve', ...args], { env: { SANDBOX_TOKEN: undefined, ...env } });
    expect({ exitCode, stdout }).toEqual({ exitCode: 125, stdout: '' });
    expect(stderr).toMatch(message);
  });

  it('a port that is taken is 125, with the setting to change', async () => {
    const { url } = await serve([]);
    const { exitCode, stderr } = await cli(['serve', '--runtime', 'node', '--port', new URL(url).port]);
    expect(exitCode).toBe(125);
    expect(stderr).toMatch(/^ringfence: cannot listen: .*EADDRINUSE.*PORT/);
  });

  it('a token as a flag does not exist', async () => {
    expect(await cli(['serve', '--token', 'abc'])).toMatchObject({ exitCode: 125, stderr: expect.stringContaining("unknown option '--token'") });
  });
});
