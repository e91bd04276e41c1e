import { describe, expect, it } from 'vitest';
import type { Question } from 'dns-packet';

import { patience } from '../support/lane.js';
import { a, aaaa, zone } from './support/dns-fixture.js';
import type { DnsFixtureReply } from './support/dns-fixture.js';
import { drain } from './support/gateway-fixture.js';
import { start, startServer } from './support/teardown.js';

const timeout = patience(1500);

/**
 * The public server is at 127.0.0.2, which allowPrivate opens as a stand-in for the Internet; the private one, which nothing may
 * reach, at 127.0.0.1 and ::1 on the same port, counting its connections.
 */
async function world(dns: (question: Question) => DnsFixtureReply | null, own: string[] = []) {
  let privateConnections = 0;
  const port = await startServer((socket) => socket.end('public'), '127.0.0.2');
  for (const host of ['127.0.0.1', '127.0.0.3', '::1']) {
    await startServer((socket) => {
      privateConnections += 1;
      socket.end('private');
    }, host, port);
  }
  const fixture = await start({ options: { allow: [`api.test:${port}`], allowPrivate: ['127.0.0.2/32'], connectTimeoutMs: timeout }, dns, dialled: { 'api.test': [port] }, own });
  return {
    ...fixture,
    port,
    privateConnections: () => privateConnections,
    fetch: async () => (await drain(fixture.dial('api.test', port))).bytes.toString(),
  };
}

const onlyA = (question: Question, reply: DnsFixtureReply): DnsFixtureReply => (question.type === 'A' ? reply : {});

describe('DNS answers', () => {
  it('control: a name that resolves to the public server alone reaches it', async () => {
    const { fetch, gateway } = await world(zone({ 'api.test': ['127.0.0.2'] }));
    expect(await fetch()).toBe('public');
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ address: '127.0.0.2', verdict: 'allowed' }]);
  });

  it('a name that rebinds between two connections is judged each time', async () => {
    let asked = 0;
    const { fetch, gateway, privateConnections } = await world(({ name, type }) => ({ answers: type === 'A' ? a(name, (asked += 1) % 2 === 1 ? '127.0.0.2' : '127.0.0.1') : [] }));
    for (let round = 0; round < 20; round += 1) expect(await fetch()).toBe(round % 2 === 0 ? 'public' : '');
    expect(privateConnections()).toBe(0);
    await gateway.close();
    expect(gateway.connections.filter(({ verdict }) => verdict === 'refused').length).toBe(10);
    expect(gateway.connections[1]).toMatchObject({ host: 'api.test', address: '127.0.0.1', reason: '127.0.0.1 may not be reached: loopback', bytesSent: 0 });
  });

  it('a name is resolved once for each connection, so that there is nothing to rebind', async () => {
    const { fetch, dns } = await world(zone({ 'api.test': ['127.0.0.2'] }));
    await fetch();
    expect(dns.questions.map(({ type }) => type).sort()).toEqual(['A', 'AAAA']);
  });

  it.each<[string, (question: Question) => DnsFixtureReply | null, string]>([
    ['one private address among public ones', (question) => onlyA(question, { answers: a(question.name, '127.0.0.2', '127.0.0.1', '127.0.0.2') }), '127.0.0.1 may not be reached: loopback'],
    ['a private IPv6 address beside a public IPv4 one', ({ name, type }) => ({ answers: type === 'A' ? a(name, '127.0.0.2') : aaaa(name, '::1') }), '::1 may not be reached: loopback'],
    ['a mapped address', ({ name, type }) => ({ answers: type === 'AAAA' ? aaaa(name, '::ffff:127.0.0.2') : [] }), '::ffff:127.0.0.2 may not be reached: IPv4-mapped'],
    ['the unspecified address', (question) => onlyA(question, { answers: a(question.name, '0.0.0.0') }), '0.0.0.0 may not be reached: unspecified ("this network")'],
    ['a CNAME to a private name', (question) => onlyA(question, { answers: [{ type: 'CNAME', name: question.name, data: 'inner.test' }, ...a('inner.test', '127.0.0.1')] }), '127.0.0.1 may not be reached: loopback'],
    ['the metadata service', (question) => onlyA(question, { answers: a(question.name, '169.254.169.254') }), '169.254.169.254 may not be reached: metadata service'],
    ['no address', () => ({}), 'the name has no address'],
    ['that there is no such name', () => ({ rcode: 3 }), 'the name has no address'],
    ['SERVFAIL', () => ({ rcode: 2 }), 'DNS failed: ESERVFAIL'],
    ['SERVFAIL for one family only', ({ name, type }) => (type === 'A' ? { answers: a(name, '127.0.0.2') } : { rcode: 2 }), 'DNS failed: ESERVFAIL'],
    ['nothing', () => null, `not connected within ${timeout} ms`],
    ['nothing for one family', ({ name, type }) => (type === 'A' ? { answers: a(name, '127.0.0.2') } : null), `not connected within ${timeout} ms`],
    ['too late', (question) => ({ ...onlyA(question, { answers: a(question.name, '127.0.0.2') }), delayMs: timeout * 1.3 }), `not connected within ${timeout} ms`],
  ])('%s: refused, and logged with the reason', async (_, script, reason) => {
    const { fetch, gateway, privateConnections } = await world(script);
    expect(await fetch()).toBe('');
    expect(privateConnections()).toBe(0);
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ host: 'api.test', verdict: 'refused', reason, bytesSent: 0, bytesReceived: 0 }]);
  });

  it('lies in case and in additional records change nothing', async () => {
    const { fetch, privateConnections } = await world(({ name, type }) => ({ echo: name.toUpperCase(), answers: type === 'A' ? a('aPi.TeSt', '127.0.0.2') : [], additionals: a(name, '127.0.0.1') }));
    expect(await fetch()).toBe('public');
    expect(privateConnections()).toBe(0);
  });

  it('an address of the host itself is refused, though its range is open', async () => {
    const { fetch, gateway } = await world(zone({ 'api.test': ['9.9.9.9'] }), ['9.9.9.9']);
    expect(await fetch()).toBe('');
    await gateway.close();
    expect(gateway.connections).toMatchObject([{ address: '9.9.9.9', reason: '9.9.9.9 may not be reached: address of the host itself' }]);
  });
});
