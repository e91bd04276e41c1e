import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { runSandboxed } from '../../../src/index.js';
import type { SandboxOptions, SandboxResult } from '../../../src/index.js';
import { compileFixture } from '../../support/compile.js';
import { patience, whereAmI } from '../../support/lane.js';
import { belongsHere } from '../../support/skip.js';

const program = compileFixture('escape/egress.c');
let server: Server;
let port = 0;
beforeEach((context) => belongsHere(context, !whereAmI().uml, 'outside of User-Mode Linux, whose one processor the guest and the host share'));
beforeAll(async () => {
  server = createServer((socket) => socket.on('error', () => undefined).end('served'));
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => server.close());

const toApi = () => ({ allow: [`api.test:${port}`], hosts: { 'api.test': '127.0.0.1' }, allowPrivate: ['127.0.0.1/32'] });

function guest(args: string[], change: Partial<SandboxOptions> = {}): Promise<SandboxResult> {
  return runSandboxed({ command: program, args, timeoutMs: patience(30_000), network: toApi(), filesystem: { read: [program] }, ...change });
}

const told = ({ connections, connectionsOmitted }: SandboxResult) => connections.length + connectionsOmitted;

/** Another guest of the same host, at the same time, is served all the while. */
async function besides(flood: Promise<SandboxResult>): Promise<{ flooder: SandboxResult; served: number; tried: number }> {
  let over = false;
  void flood.then(() => (over = true));
  let served = 0;
  let tried = 0;
  while (!over) {
    const { stdout } = await guest(['tcp', 'api.test', String(port)]);
    tried++;
    if (stdout === 'ESCAPED served\n') served++;
  }
  return { flooder: await flood, served, tried };
}

describe('a guest that floods', { timeout: patience(90_000) }, () => {
  it('with queries is answered at a bounded rate, has all of them counted, and holds nobody else up', async () => {
    let heard = 0;
    const network = { ...toApi(), onConnection: () => void heard++ };
    const { flooder, served, tried } = await besides(guest(['flood', '300000', 'api.test'], { network }));
    const sent = Number(/(\d+) sent/.exec(flooder.stdout)?.[1]);
    // Far more than is looked at; and the last question is answered like any other.
    expect(flooder.stdout).toMatch(/^ESCAPED \d+ sent, and it still answers$/m);
    expect(sent).toBeGreaterThan(100_000);
    expect(flooder.connections.length).toBe(1000);
    // Where the kernel is at its limit it drops some before any socket, and counts them nowhere.
    expect(told(flooder)).toBeLessThanOrEqual(sent);
    expect(told(flooder)).toBeGreaterThan(sent * 0.99);
    expect(heard).toBeLessThan(2000 * (2 + flooder.durationMs / 1000));
    expect(heard).toBeGreaterThan(1000);
    expect(tried).toBeGreaterThan(0);
    expect(served).toBe(tried);
  });

  it('with datagrams to anywhere has all of them counted, at a bounded rate, and holds nobody else up', async () => {
    const { flooder, served, tried } = await besides(guest(['spray', '30000', '9.9.9.9', '53']));
    expect(flooder.connections.length).toBe(1000);
    expect(flooder.connections.every(({ reason, verdict }) => verdict === 'refused' && reason === 'UDP is not relayed')).toBe(true);
    expect(told(flooder)).toBeLessThanOrEqual(30_000);
    expect(told(flooder)).toBeGreaterThan(30_000 * 0.99);
    expect(served).toBe(tried);
  });

  it('with names below a wildcard gets no more addresses than there are', async () => {
    const network = { allow: ['*.wild.test'] };
    const result = await guest(['flood', '6000', 'a.wild.test'], { network });
    expect(result.stdout).toMatch(/still answers/);
    expect(result.connections.every(({ reason }) => reason === 'too many names in one run')).toBe(true);
  });
});
