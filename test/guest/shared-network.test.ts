/** SANDBOX_DISABLE_NETNS_FIREWALL=1: guests share this machine's network, and the channel is among others' connections. */
import { connect } from 'node:net';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Channel } from '../../src/guest/channel.js';
import { KEY_BYTES } from '../../src/guest/frames.js';
import { executorFor, outputOf, run, runtimes } from './support/executors.js';

beforeAll(() => void (process.env['SANDBOX_DISABLE_NETNS_FIREWALL'] = '1'));
afterAll(() => void delete process.env['SANDBOX_DISABLE_NETNS_FIREWALL']);

describe.each(runtimes)('without a network fence, a function on %s', (runtime) => {
  const executor = executorFor(runtime);

  it('runs, and is told to be without it', async () => {
    const answer = await run(executor, 'export default async (n) => [n + 1, await host.twice(n)]', { input: 20, bindings: { twice: (n) => Number(n) * 2 } });
    expect(answer).toMatchObject({ ok: true, output: [21, 40] });
    expect(answer.enforcement.network.status).toBe('disabled');
    expect(answer.enforcement.filesystem.status).toBe('enforced');
  });

  it('finds nothing of the password', async () => {
    const source = `import { readFileSync } from 'node:fs'; import process from 'node:process';
      export default () => { try { return [readFileSync(0).length, process.argv.length] } catch ({ code }) { return [code, process.argv.length] } }`;
    const [input] = (await outputOf(run(executor, source))) as [unknown];
    expect(input === 0 || typeof input === 'string').toBe(true);
  });
});

describe('a channel among others\' connections', () => {
  const password = Buffer.from('p'.repeat(32));

  it('is for whoever says the password, not for whoever comes first', async () => {
    const heard: unknown[] = [];
    const channel = new Channel({ onMessage: (message) => heard.push(message), onBroken: (error) => heard.push(error) });
    const port = await channel.listenAmongOthers(password);
    const strangers = ['', 'x', 'p'.repeat(31) + 'q', 'p'.repeat(33), 'x'.repeat(10_000)].map((says) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(says === '' ? '\0' : says);
      return socket;
    });
    await sleep(50);
    const socket = connect(port, '127.0.0.1');
    socket.write(password.subarray(0, 10));
    await sleep(10);
    socket.write(password.subarray(10));
    await once(socket, 'readable');
    const key = socket.read(KEY_BYTES) as Buffer;
    const text = Buffer.from('{"t":"log","text":"log: mine"}');
    const head = Buffer.alloc(4);
    head.writeUInt32LE(text.length);
    socket.write(Buffer.concat([key, head, text]));
    for (let tries = 0; tries < 100 && heard.length === 0; tries++) await sleep(10);
    expect(heard).toEqual([{ t: 'log', text: 'log: mine' }]);
    for (const stranger of strangers) expect(stranger.bytesRead).toBe(0);
    const late = connect(port, '127.0.0.1');
    const [refused] = (await once(late, 'error')) as [NodeJS.ErrnoException];
    expect(refused.code).toBe('ECONNREFUSED');
    for (const each of [...strangers, socket]) each.destroy();
    channel.close();
  });
});
