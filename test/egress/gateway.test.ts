import { once } from 'node:events';
import type { Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { a, zone } from './support/dns-fixture.js';
import { drain, openGateway, serve } from './support/gateway-fixture.js';
import type { GatewayFixture, GatewaySetup } from './support/gateway-fixture.js';

const opened: (GatewayFixture | Server)[] = [];

afterEach(async () => {
  for (const item of opened.splice(0).reverse()) {
    if ('gateway' in item) await item.close();
    else item.close();
  }
});

async function start(setup: GatewaySetup): Promise<GatewayFixture> {
  const fixture = await openGateway(setup);
  opened.push(fixture);
  return fixture;
}

async function startServer(...args: Parameters<typeof serve>): Promise<number> {
  const { server, port } = await serve(...args);
  opened.push(server);
  return port;
}

const echo = () => startServer((socket) => socket.pipe(socket));

describe('Gateway', () => {
  it('joins the guest to a server of an allowed name, and logs it with byte counts', async () => {
    const port = await echo();
    const { gateway, dial } = await start({ options: { allow: [`api.test:${port}`] }, dns: zone({ 'api.test': ['127.0.0.1'] }), dialled: { 'api.test': [port] } });
    const guest = dial('api.test', port);
    guest.end('hello');
    expect((await drain(guest)).bytes.toString()).toBe('hello');
    await gateway.close();
    expect(gateway.connections).toMatchObject([
      { host: 'api.test', port, address: '127.0.0.1', verdict: 'allowed', reason: 'closed', bytesSent: 5, bytesReceived: 5 },
    ]);
  });

  it('refuses a port that another name has', async () => {
    const port = await echo();
    const { gateway, dial, dns } = await start({
      options: { allow: [`api.test:${port}`, 'other.test'] },
      dns: zone({ 'other.test': ['127.0.0.1'] }),
      dialled: { 'api.test': [], 'other.test': [port] },
    });
    expect((await drain(dial('other.test', port))).error).toBe('ECONNRESET');
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ host: 'other.test', port, address: null, verdict: 'refused', reason: `port ${port} of this host is not in the allowlist` }]);
    expect(dns.questions).toEqual([]);
  });
});
