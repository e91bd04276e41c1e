import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';

import { Gateway } from '../../src/egress/gateway.js';
import { compilePolicy } from '../../src/egress/policy.js';
import { zone } from './support/dns-fixture.js';
import { freePort } from '../support/free-port.js';
import { drain } from './support/gateway-fixture.js';
import { echo, start, startServer } from './support/teardown.js';

const local = zone({ 'api.test': ['127.0.0.1'] });

describe('Gateway.close', () => {
  it('resets what is open, and completes the log', async () => {
    const port = await echo();
    const silent = await freePort();
    const { gateway, dial } = await start({
      options: { allow: [`api.test:${port}`, `stuck.test:${silent}`] },
      dns: (question) => (question.name === 'stuck.test' ? null : local(question)),
      dialled: { 'api.test': [port], 'stuck.test': [silent] },
    });
    const open = dial('api.test', port);
    open.write('x');
    await once(open, 'data');
    const resolving = dial('stuck.test', silent);
    await once(resolving, 'connect');
    await sleep(50);
    const ends = Promise.all([drain(open), drain(resolving)]);
    await gateway.close(50);
    expect((await ends).map(({ error }) => error)).toEqual(['ECONNRESET', 'ECONNRESET']);
    const byHost = [...gateway.connections].sort((left, right) => left.host.localeCompare(right.host));
    expect(byHost).toMatchObject([
      { host: 'api.test', verdict: 'allowed', reason: 'the run ended', bytesSent: 1, bytesReceived: 1 },
      { host: 'stuck.test', verdict: 'refused', reason: 'the run ended' },
    ]);
  });

  it('is the same promise every time', async () => {
    const { gateway } = await start({ options: { allow: ['api.test'] }, dns: local, dialled: {} });
    const first = gateway.close();
    expect(gateway.close()).toBe(first);
    await first;
  });

  it('delivers what the guest has sent before it was gone, even if the server is slow', async () => {
    let received = 0;
    const port = await startServer((socket) => {
      socket.pause();
      setTimeout(() => socket.resume(), 200);
      socket.on('data', (chunk) => (received += chunk.length));
      socket.on('end', () => {});
    });
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`] }, dns: local, dialled: { 'api.test': [port] } });
    const guest = dial('api.test', port);
    const total = 3 << 20;
    guest.end(Buffer.alloc(total));
    await once(guest, 'connect');
    await gateway.close(5000);
    await expect.poll(() => received).toBe(total);
    expect(gateway.connections).toMatchObject([{ verdict: 'allowed', reason: 'closed', bytesSent: total }]);
    guest.destroy();
  });

  it('waits no longer than it was told for a guest that is not gone', async () => {
    const port = await echo();
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`] }, dns: local, dialled: { 'api.test': [port] } });
    const guest = dial('api.test', port);
    guest.write('x');
    await once(guest, 'data');
    const started = performance.now();
    await gateway.close(100);
    expect(performance.now() - started).toBeLessThan(3000);
    expect(gateway.connections).toMatchObject([{ reason: 'the run ended' }]);
  });

  it('waits for the promises of onConnection, and hands over what they are rejected with', async () => {
    const port = await echo();
    let settled = 0;
    const onConnection = async () => {
      await sleep(200);
      settled += 1;
      throw new Error('mine');
    };
    const { gateway, dial, thrown } = await start({ options: { allow: [`api.test:${port}`], onConnection }, dns: local, dialled: { 'api.test': [port] } });
    const guest = dial('api.test', port);
    guest.end('x');
    await drain(guest);
    const open = dial('api.test', port);
    open.write('x');
    await once(open, 'data');
    await gateway.close(0);
    expect(settled).toBe(2);
    expect(thrown).toEqual([new Error('mine'), new Error('mine')]);
  });

  it('waits for no promise of onConnection for ever', async () => {
    const port = await echo();
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`], onConnection: () => new Promise(() => {}) }, dns: local, dialled: { 'api.test': [port] } });
    const guest = dial('api.test', port);
    guest.end('x');
    await drain(guest);
    const started = performance.now();
    await gateway.close();
    const waited = performance.now() - started;
    expect(waited).toBeGreaterThan(1900);
    expect(waited).toBeLessThan(10_000);
  });

  it('takes resets of a guest that is being killed for the end of the run, and a server\'s for its own', async () => {
    const port = await startServer((socket) => {
      socket.on('data', (text) => (String(text) === 'bye' ? socket.resetAndDestroy() : socket.write('hello')));
    });
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`] }, dns: local, dialled: { 'api.test': [port] } });
    const reason = async (end: (guest: Socket) => void) => {
      const guest = dial('api.test', port);
      guest.write('x');
      await once(guest, 'data');
      const before = gateway.connections.length;
      end(guest);
      await expect.poll(() => gateway.connections.length).toBe(before + 1);
      return gateway.connections.at(-1)?.reason;
    };
    expect(await reason((guest) => guest.resetAndDestroy())).toBe('reset by the guest');
    gateway.runEnding();
    expect(await reason((guest) => guest.resetAndDestroy())).toBe('the run ended');
    expect(await reason((guest) => guest.write('bye'))).toBe('reset by the server');
  });
});

describe('Gateway.open', () => {
  it('closes everything again when one socket cannot be served', async () => {
    const taken = await echo();
    const free = await freePort();
    const sockets = { listeners: [{ port: free, endpoint: { host: '127.0.0.1', port: free } }, { port: taken, endpoint: { host: '127.0.0.1', port: taken } }], dnsUdp: { host: '127.0.0.1', port: 0 }, dnsTcp: { host: '127.0.0.1', port: 0 } };
    await expect(Gateway.open({ policy: compilePolicy({ allow: ['api.test'] }), sockets, onThrow: () => {} })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    // The port is free again.
    await startServer(() => {}, '127.0.0.1', free);
  });
});
