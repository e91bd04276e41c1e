import { once } from 'node:events';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { Resolver } from 'node:dns/promises';
import { describe, expect, it, onTestFinished } from 'vitest';

import type { Connection } from '../../src/run/result.js';
import { belongsHere } from '../support/skip.js';
import { zone } from './support/dns-fixture.js';
import { freePort } from '../support/free-port.js';
import { drain, serve } from './support/gateway-fixture.js';
import { startSilent } from './support/silent.js';
import { echo, start, startServer } from './support/teardown.js';

const local = zone({ 'api.test': ['127.0.0.1'], 'other.test': ['127.0.0.1'] });

describe('Gateway', () => {
  it('joins the guest to a server of an allowed name, and logs it with byte counts', async () => {
    const port = await echo();
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`] }, dns: local, dialled: { 'api.test': [port] } });
    const guest = dial('api.test', port);
    guest.end('hello');
    expect((await drain(guest)).bytes.toString()).toBe('hello');
    await gateway.close();
    expect(gateway.connections).toEqual([
      { at: expect.any(Number), host: 'api.test', port, address: '127.0.0.1', verdict: 'allowed', reason: 'closed', bytesSent: 5, bytesReceived: 5, durationMs: expect.any(Number) },
    ]);
  });

  it('answers names over both transports, and logs a refused one once for both families', async () => {
    const told: Connection[] = [];
    const { gateway, dnsPort } = await start({ options: { allow: ['api.test'], onConnection: (connection) => told.push(connection) }, dns: local, dialled: {} });
    const resolver = new Resolver();
    resolver.setServers([`127.0.0.1:${dnsPort}`]);
    expect(await resolver.resolve4('API.test')).toEqual(['127.18.1.0']);
    await expect(Promise.all([resolver.resolve4('evil.test'), resolver.resolve6('evil.test')])).rejects.toThrow('ENOTFOUND');
    await expect(resolver.resolveTxt('secret.evil.test')).rejects.toThrow('ENOTFOUND');
    await gateway.close();
    expect(gateway.connections).toMatchObject([
      { host: 'evil.test', port: 0, address: null, verdict: 'refused', reason: 'not in the allowlist' },
      { host: 'secret.evil.test', port: 0, verdict: 'refused' },
    ]);
    expect(told).toEqual(gateway.connections);
  });

  it('says why a metadata service stays shut below a wildcard', async () => {
    const { gateway, dnsPort } = await start({ options: { allow: ['*.google.internal'] }, dns: local, dialled: {} });
    const resolver = new Resolver();
    resolver.setServers([`127.0.0.1:${dnsPort}`]);
    await expect(resolver.resolve4('metadata.google.internal')).rejects.toThrow('ENOTFOUND');
    expect(gateway.connections).toMatchObject([{ host: 'metadata.google.internal', verdict: 'refused', reason: 'may not be reached: metadata service' }]);
  });

  it('hands over what onConnection throws, and goes on', async () => {
    const port = await echo();
    const onConnection = () => {
      throw new Error('mine');
    };
    const { gateway, dial, thrown } = await start({ options: { allow: [`api.test:${port}`], onConnection }, dns: local, dialled: { 'api.test': [port] } });
    for (const text of ['one', 'two']) {
      const guest = dial('api.test', port);
      guest.end(text);
      expect((await drain(guest)).bytes.toString()).toBe(text);
    }
    await gateway.close();
    expect(gateway.connections.length).toBe(2);
    expect(thrown).toEqual([new Error('mine'), new Error('mine')]);
  });

  it('refuses a port that only another name has, and asks no one about it', async () => {
    const port = await echo();
    const { gateway, dial, dns } = await start({ options: { allow: [`api.test:${port}`, 'other.test'] }, dns: local, dialled: { 'api.test': [], 'other.test': [port] } });
    expect((await drain(dial('other.test', port))).error).toBe('ECONNRESET');
    expect(gateway.connections).toMatchObject([{ host: 'other.test', port, address: null, verdict: 'refused', reason: `port ${port} of this host is not in the allowlist` }]);
    expect(dns.questions).toEqual([]);
  });

  it('refuses an address that stands for no name, loopback of the sandbox among them', async () => {
    const port = await echo();
    const { gateway } = await start({ options: { allow: [`api.test:${port}`] }, dns: local, dialled: { 'api.test': [port] }, extra: { '127.18.9.9': [port] } });
    const guest = connect({ host: '127.18.9.9', port });
    expect((await drain(guest)).error).toBe('ECONNRESET');
    expect(gateway.connections).toMatchObject([{ host: '127.18.9.9', port, address: '127.18.9.9', verdict: 'refused', reason: 'not in the allowlist' }]);
  });

  it('reaches literals that are in the allowlist without asking DNS', async () => {
    const port = await freePort();
    const { gateway, dns } = await start({
      options: { allow: [`127.0.9.1:${port}`] },
      dns: local,
      dialled: {},
      extra: { '127.0.9.1': [port] },
      dialInstead: '127.0.9.2',
    });
    await startServer((socket) => socket.end('literal'), '127.0.9.2', port);
    expect((await drain(connect({ host: '127.0.9.1', port }))).bytes.toString()).toBe('literal');
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ host: '127.0.9.1', verdict: 'allowed', bytesReceived: 7 }]);
    expect(dns.questions).toEqual([]);
  });

  it('connects a pinned name to its address, without asking DNS', async () => {
    const port = await startServer((socket) => socket.end('pinned'), '127.0.0.5');
    const { gateway, dial, dns } = await start({ options: { allow: [`api.test:${port}`], hosts: { 'api.test': '127.0.0.5' } }, dns: local, dialled: { 'api.test': [port] } });
    expect((await drain(dial('api.test', port))).bytes.toString()).toBe('pinned');
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ host: 'api.test', address: '127.0.0.5', verdict: 'allowed' }]);
    expect(dns.questions).toEqual([]);
  });

  it('says so when nobody answers at an allowed address', async () => {
    // An address that no server of any test listens on: a port alone could be another's a moment later.
    const nobody = '127.77.0.77';
    const port = await freePort();
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`] }, dns: zone({ 'api.test': [nobody] }), dialled: { 'api.test': [port] } });
    expect((await drain(dial('api.test', port))).error).toBe('ECONNRESET');
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ host: 'api.test', address: nobody, verdict: 'allowed', reason: `connect ECONNREFUSED ${nobody}:${port}` }]);
  });

  it('sees by the connection itself that an address has become the host\'s own', async (context) => {
    const own = Object.values(networkInterfaces()).flat().find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address ?? '';
    belongsHere(context, own !== '', 'where the host has an address beside loopback');
    let received = 0;
    const { server, port } = await serve((socket) => socket.on('data', (chunk) => (received += chunk.length)), own);
    onTestFinished(() => void server.close());
    const network = own.replace(/\d+$/, '0');
    const setup = { options: { allow: [`api.test:${port}`], allowPrivate: [`${network}/24`] }, dns: zone({ 'api.test': [own] }), dialled: { 'api.test': [port] }, own: [] };
    const { gateway, dial } = await start(setup);
    const socket = dial('api.test', port);
    socket.write('secret');
    expect((await drain(socket)).error).toBe('ECONNRESET');
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ verdict: 'refused', address: own, reason: `${own} may not be reached: address of the host itself`, bytesSent: 0 }]);
    expect(received).toBe(0);
    // Named as a single address it is what somebody wants.
    const opened = await start({ ...setup, options: { ...setup.options, allowPrivate: [`${own}/32`] } });
    opened.dial('api.test', port).write('wanted');
    await expect.poll(() => received).toBe(6);
  });

  it('logs what the kernel refused, when told', async () => {
    const { gateway } = await start({ options: { allow: ['api.test'] }, dns: local, dialled: { 'api.test': [] } });
    gateway.refusedByKernel({ protocol: 'tcp', address: '127.18.1.0', port: 22 });
    gateway.refusedByKernel({ protocol: 'tcp', address: '1.1.1.1', port: 443 });
    gateway.refusedByKernel({ protocol: 'udp', address: '8.8.8.8', port: 53 });
    expect(gateway.connections).toMatchObject([
      { host: 'api.test', port: 22, address: null, verdict: 'refused', reason: 'port 22 of this host is not in the allowlist' },
      { host: '1.1.1.1', port: 443, address: '1.1.1.1', verdict: 'refused', reason: 'not in the allowlist' },
      { host: '8.8.8.8', port: 53, address: '8.8.8.8', verdict: 'refused', reason: 'UDP is not relayed' },
    ]);
  });

  it('carries 100 connections at once, each to its own name', async () => {
    const port = await startServer((socket) => socket.pipe(socket));
    const names = Array.from({ length: 100 }, (_, index) => `n${index}.wild.test`);
    const { gateway, dial } = await start({
      options: { allow: [`*.wild.test:${port}`], maxConnections: 100 },
      dns: zone(Object.fromEntries(names.map((name) => [name, ['127.0.0.1']]))),
      dialled: Object.fromEntries(names.map((name) => [name, [port]])),
    });
    await Promise.all(
      names.map(async (name) => {
        const guest = dial(name, port);
        guest.end(name.repeat(1000));
        expect((await drain(guest)).bytes.toString()).toBe(name.repeat(1000));
      }),
    );
    await gateway.close();
    expect(gateway.connections.length).toBe(100);
    expect(new Set(gateway.connections.map(({ host }) => host)).size).toBe(100);
    expect(gateway.connections.every(({ verdict, bytesSent, bytesReceived, host }) => verdict === 'allowed' && bytesSent === host.length * 1000 && bytesReceived === bytesSent)).toBe(true);
  });
});

describe('Gateway, when the addresses of the host cannot be told', () => {
  it('refuses every connection', async () => {
    const port = await echo();
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`] }, dns: local, dialled: { 'api.test': [port] }, own: new Error('no /proc') });
    expect((await drain(dial('api.test', port))).error).toBe('ECONNRESET');
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ host: 'api.test', verdict: 'refused', reason: 'no /proc' }]);
  });
});

describe('Gateway limits', () => {
  it('refuses connections beyond maxConnections, and takes new ones when some have ended', async () => {
    const port = await echo();
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`], maxConnections: 2 }, dns: local, dialled: { 'api.test': [port] } });
    const open = [dial('api.test', port), dial('api.test', port)];
    for (const guest of open) {
      guest.write('x');
      await once(guest, 'data');
    }
    expect((await drain(dial('api.test', port))).error).toBe('ECONNRESET');
    expect(gateway.connections).toMatchObject([{ host: 'api.test', verdict: 'refused', reason: 'more than 2 connections at one time' }]);
    for (const guest of open) guest.end();
    await Promise.all(open.map((guest) => drain(guest)));
    await expect.poll(() => gateway.connections.length).toBe(3);
    const again = dial('api.test', port);
    again.end('back');
    expect((await drain(again)).bytes.toString()).toBe('back');
  });

  it('ends connections at maxBytes, and refuses those that come later', async () => {
    const port = await echo();
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`], maxBytes: 1000 }, dns: local, dialled: { 'api.test': [port] } });
    const guest = dial('api.test', port);
    guest.end(Buffer.alloc(600));
    expect((await drain(guest)).error).toBe('ECONNRESET');
    expect((await drain(dial('api.test', port))).error).toBe('ECONNRESET');
    await gateway.close();
    expect(gateway.connections).toMatchObject([
      { verdict: 'allowed', reason: 'byte limit of the run reached', bytesSent: 600 },
      { verdict: 'refused', reason: 'byte limit of the run reached', bytesSent: 0 },
    ]);
  });

  it('ends idle connections', async () => {
    const port = await echo();
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`], idleTimeoutMs: 100 }, dns: local, dialled: { 'api.test': [port] } });
    expect((await drain(dial('api.test', port))).error).toBe('ECONNRESET');
    await expect.poll(() => gateway.connections).toMatchObject([{ verdict: 'allowed', reason: 'idle for 100 ms' }]);
  });

  it('names the address that did not answer in time, if there was one only', async () => {
    const port = await freePort();
    await startSilent(port, '127.78.0.1');
    await startSilent(port, '127.78.0.2');
    const { gateway, dial } = await start({
      options: { allow: [`one.test:${port}`, `two.test:${port}`], connectTimeoutMs: 100 },
      dns: zone({ 'one.test': ['127.78.0.1'], 'two.test': ['127.78.0.1', '127.78.0.2'] }),
      dialled: { 'one.test': [port], 'two.test': [port] },
    });
    for (const name of ['one.test', 'two.test']) expect((await drain(dial(name, port))).error).toBe('ECONNRESET');
    await gateway.close();
    expect(gateway.connections).toMatchObject([
      { host: 'one.test', address: '127.78.0.1', verdict: 'allowed', reason: 'not connected within 100 ms' },
      { host: 'two.test', address: null, verdict: 'allowed', reason: 'not connected within 100 ms' },
    ]);
  });

  it('gives up when resolving takes longer than connectTimeoutMs', async () => {
    const port = await freePort();
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`], connectTimeoutMs: 100 }, dns: () => null, dialled: { 'api.test': [port] } });
    expect((await drain(dial('api.test', port))).error).toBe('ECONNRESET');
    await expect.poll(() => gateway.connections).toMatchObject([{ verdict: 'refused', reason: 'not connected within 100 ms' }]);
  });
});
