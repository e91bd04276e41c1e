import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { needs } from '../support/skip.js';
import type { EgressOptions } from '../../src/egress/policy.js';
import { selfSigned } from './support/certificate.js';
import { zone } from './support/dns-fixture.js';
import { drain } from './support/gateway-fixture.js';
import type { GatewayFixture } from './support/gateway-fixture.js';
import { clientHello, records } from './support/hello.js';
import { start, startServer } from './support/teardown.js';
import { missingTools } from './support/tools.js';

const missing = missingTools('openssl');
beforeEach((context) => needs(context, missing));

const pair = missing === null ? selfSigned('api.test', 'evil.test') : { key: '', cert: '' };
let seen: { host: string | undefined; serverName: unknown }[] = [];
const server = createHttpsServer(missing === null ? pair : {}, (request, response) => {
  seen.push({ host: request.headers.host, serverName: (request.socket as TLSSocket).servername });
  response.end('secret');
});
let port = 0;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterAll(() => void server.close());

async function open(allow: EgressOptions['allow'] = [`api.test:${port}`]): Promise<GatewayFixture> {
  seen = [];
  return start({ options: { allow }, dns: zone({ 'api.test': ['127.0.0.1'] }), dialled: { 'api.test': [port] } });
}

/** GET over TLS on this socket; empty when it does not come to an answer. */
async function get(socket: Socket, options: ConnectionOptions): Promise<string> {
  const tls = connectTls({ socket, ca: pair.cert, checkServerIdentity: () => undefined, ...options });
  tls.write('GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n');
  return (await drain(tls)).bytes.toString();
}

describe('TLS through the gateway', () => {
  it.each<[string, ConnectionOptions]>([['1.3', {}], ['1.2', { maxVersion: 'TLSv1.2' }]])('reaches the server under the name that was dialled (TLS %s), untouched', async (_, options) => {
    const { dial, gateway } = await open();
    expect(await get(dial('api.test', port), { servername: 'api.test', ...options })).toContain('secret');
    expect(seen).toEqual([{ host: 'api.test', serverName: 'api.test' }]);
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ host: 'api.test', verdict: 'allowed', reason: 'closed' }]);
  });

  it('is refused under another name', async () => {
    const { dial, gateway } = await open();
    expect(await get(dial('api.test', port), { servername: 'evil.test' })).toBe('');
    expect(seen).toEqual([]);
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ host: 'api.test', address: '127.0.0.1', verdict: 'refused', reason: 'TLS server name "evil.test" is not "api.test"', bytesSent: 0 }]);
  });

  it('is refused without a name', async () => {
    const { dial, gateway } = await open();
    expect(await get(dial('api.test', port), { servername: '' })).toBe('');
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ verdict: 'refused', reason: 'TLS without a server name', bytesSent: 0 }]);
  });

  it("control: goes through under any name, and without one, where the host has sni: 'any'", async () => {
    const { dial, gateway } = await open([{ host: `api.test:${port}`, sni: 'any' }]);
    expect(await get(dial('api.test', port), { servername: 'evil.test' })).toContain('secret');
    expect(await get(dial('api.test', port), { servername: '' })).toContain('secret');
    expect(seen.map(({ serverName }) => serverName)).toEqual(['evil.test', false]);
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ verdict: 'allowed' }, { verdict: 'allowed' }]);
  });

  it('goes through when the hello comes byte by byte', async () => {
    const { dial, gateway } = await open();
    const socket = dial('api.test', port);
    socket.setNoDelay(true);
    for (const byte of records(clientHello({ names: [[0, 'api.test']] }), [5, 1, 60])) {
      socket.write(Buffer.from([byte]));
      if (byte % 16 === 0) await sleep(1);
    }
    // The hand-made hello offers nothing that a server takes: its alert shows that it got there.
    const [alert] = await once(socket, 'data');
    expect((alert as Buffer)[0]).toBe(21);
    socket.destroy();
    await expect.poll(() => gateway.connections.length).toBe(1);
    expect(gateway.connections).toMatchObject([{ verdict: 'allowed' }]);
  });

  it.each<[string, Buffer, string]>([
    ['a hello that is cut short by the end', records(clientHello()).subarray(0, 60), 'the TLS ClientHello ends half-way'],
    ['a warning before the hello', Buffer.concat([Buffer.from([21, 3, 1, 0, 2, 1, 90]), records(clientHello({ names: [[0, 'api.test']] }))]), 'malformed TLS ClientHello: another record before the end of the hello'],
    ['two names', records(clientHello({ names: [[0, 'api.test'], [0, 'evil.test']] })), 'malformed TLS ClientHello: two server names'],
    ['a NUL behind the name', records(clientHello({ names: [[0, 'api.test\0']] })), 'malformed TLS ClientHello: a server name that is no host name'],
    ['a dot behind the name', records(clientHello({ names: [[0, 'api.test.']] })), 'TLS server name "api.test." is not "api.test"'],
    ['a hello in the format of SSLv2', Buffer.from([0x80, 0x2e, 1, 3, 1, 0, 0]), 'TLS without a server name'],
  ])('%s is refused', async (_, bytes, reason) => {
    let received = 0;
    const raw = await startServer((socket) => socket.on('data', (chunk) => (received += chunk.length)));
    const { dial, gateway } = await start({ options: { allow: [`api.test:${raw}`] }, dns: zone({ 'api.test': ['127.0.0.1'] }), dialled: { 'api.test': [raw] } });
    const guest = dial('api.test', raw);
    guest.end(bytes);
    expect((await drain(guest)).error).toBe('ECONNRESET');
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ verdict: 'refused', reason, bytesSent: 0 }]);
    expect(received).toBe(0);
  });

  it('what is not TLS goes through at once, and a server that speaks first is heard', async () => {
    const raw = await startServer((socket) => {
      socket.write('220 ready\r\n');
      socket.on('data', (chunk) => socket.end(`got ${chunk.toString()}`));
    });
    const { dial } = await start({ options: { allow: [`api.test:${raw}`] }, dns: zone({ 'api.test': ['127.0.0.1'] }), dialled: { 'api.test': [raw] } });
    const guest = dial('api.test', raw);
    const [banner] = await once(guest, 'data');
    expect(String(banner)).toBe('220 ready\r\n');
    guest.write('E');
    expect((await drain(guest)).bytes.toString()).toBe('got E');
  });
});
