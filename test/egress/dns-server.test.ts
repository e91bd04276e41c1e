import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Resolver } from 'node:dns/promises';
import { decode, encode } from 'dns-packet';
import { afterEach, describe, expect, it } from 'vitest';

import { answer } from '../../src/egress/dns.js';
import { serveTcp, serveUdp } from '../../src/egress/dns-server.js';
import type { DnsDesk } from '../../src/egress/dns-server.js';

const told = { refused: [] as string[], omitted: 0 };
const desk: DnsDesk = {
  respond: (query, transport) => {
    const { reply, malformed } = answer(query, (name) => (name.endsWith('.test') ? { address: '198.18.1.0' } : 'refused'), transport);
    if (malformed) told.refused.push(malformed.reason);
    return reply;
  },
  refuse: (reason) => void told.refused.push(reason),
  omit: (count) => void (told.omitted += count),
  stir: () => {},
  accept: () => {},
};
const closers: (() => void)[] = [];

afterEach(() => {
  for (const close of closers.splice(0)) close();
  Object.assign(told, { refused: [], omitted: 0 });
});

async function startUdp(): Promise<{ socket: UdpSocket; port: number }> {
  const socket = await serveUdp({ host: '127.0.0.1', port: 0 }, desk);
  closers.push(() => socket.close());
  return { socket, port: socket.address().port };
}

async function startTcp(): Promise<{ clients: Set<Socket>; port: number }> {
  const { server, clients } = await serveTcp({ host: '127.0.0.1', port: 0 }, desk);
  closers.push(() => {
    server.close();
    for (const client of clients) client.destroy();
  });
  return { clients, port: (server.address() as AddressInfo).port };
}

function frame(name: string, id: number): Buffer {
  const message = encode({ type: 'query', id, questions: [{ name, type: 'A' }] });
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

function frames(bytes: Buffer): { id: number | undefined; answers: number }[] {
  const found: { id: number | undefined; answers: number }[] = [];
  for (let offset = 0; offset + 2 <= bytes.length && offset + 2 + bytes.readUInt16BE(offset) <= bytes.length; offset += 2 + bytes.readUInt16BE(offset)) {
    const packet = decode(bytes.subarray(offset + 2, offset + 2 + bytes.readUInt16BE(offset)));
    found.push({ id: packet.id, answers: packet.answers?.length ?? 0 });
  }
  return found;
}

/** Unlike events.once it does not reject on a reset. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

async function exchange(port: number, chunks: Buffer[]): Promise<Buffer> {
  const client = connect({ host: '127.0.0.1', port, noDelay: true });
  client.on('error', () => {});
  const received: Buffer[] = [];
  client.on('data', (chunk) => received.push(chunk));
  for (const chunk of chunks) {
    client.write(chunk);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  client.end();
  await closed(client);
  return Buffer.concat(received);
}

describe('serveUdp', () => {
  it('answers a real resolver', async () => {
    const { port } = await startUdp();
    const resolver = new Resolver();
    resolver.setServers([`127.0.0.1:${port}`]);
    expect(await resolver.resolve4('api.test')).toEqual(['198.18.1.0']);
    await expect(resolver.resolve6('api.test')).rejects.toMatchObject({ code: 'ENODATA' });
    await expect(resolver.resolveTxt('api.test')).rejects.toMatchObject({ code: 'ENODATA' });
    await expect(resolver.resolve4('evil.com')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    await expect(resolver.reverse('8.8.8.8')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });

  it('lives through garbage, oversized datagrams and floods', async () => {
    const { port } = await startUdp();
    const client = createSocket('udp4');
    for (let index = 0; index < 5000; index += 1) client.send(Buffer.alloc((index * 37) % 9000, index), port, '127.0.0.1');
    await new Promise((resolve) => setTimeout(resolve, 1100));
    client.send(encode({ type: 'query', id: 77, questions: [{ name: 'api.test', type: 'A' }] }), port, '127.0.0.1');
    const replies: number[] = [];
    client.on('message', (message) => replies.push(message.readUInt16BE(0)));
    await expect.poll(() => replies).toContain(77);
    expect(told.refused).toContain('no DNS query');
    client.close();
  });
});

describe('a socket that cannot be served', () => {
  it('rejects, and leaves no handle behind', async () => {
    const { port } = await startUdp();
    const udpHandles = () => process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length;
    const before = udpHandles();
    await expect(serveUdp({ host: '127.0.0.1', port }, desk)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await expect(serveUdp({ fd: 0x7fff }, desk)).rejects.toThrow();
    const tcp = await startTcp();
    await expect(serveTcp({ host: '127.0.0.1', port: tcp.port }, desk)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await expect.poll(udpHandles).toBeLessThanOrEqual(before);
  });
});

describe('serveTcp', () => {
  it('answers many queries on one connection, in order', async () => {
    const { port } = await startTcp();
    const queries = Array.from({ length: 50 }, (_, id) => frame(id % 2 === 0 ? 'api.test' : 'evil.com', id));
    expect(frames(await exchange(port, [Buffer.concat(queries)]))).toEqual(queries.map((_, id) => ({ id, answers: id % 2 === 0 ? 1 : 0 })));
  });

  it('puts split frames together', async () => {
    const { port } = await startTcp();
    const bytes = Buffer.concat([frame('api.test', 1), frame('api.test', 2)]);
    expect(frames(await exchange(port, Array.from(bytes, (byte) => Buffer.from([byte]))))).toEqual([{ id: 1, answers: 1 }, { id: 2, answers: 1 }]);
  });

  it.each<[string, string, Buffer]>([
    ['an oversized frame', 'DNS query of 4097 bytes', Buffer.from([0x10, 0x01, 1, 2, 3])],
    ['an empty frame', 'no DNS query', Buffer.from([0, 0])],
    ['a response', 'no DNS query', Buffer.concat([Buffer.from([0, 12]), encode({ type: 'response' }).subarray(0, 12)])],
  ])('hangs up on %s, and tells', async (_, reason, bytes) => {
    const { port, clients } = await startTcp();
    const client = connect({ host: '127.0.0.1', port });
    client.on('error', () => {});
    client.write(bytes);
    await closed(client);
    expect(clients.size).toBe(0);
    expect(told).toEqual({ refused: [reason], omitted: 0 });
  });

  it('tells what was cut short, and counts what stood behind the end', async () => {
    const { port } = await startTcp();
    await exchange(port, [frame('api.test', 1).subarray(0, 9)]);
    expect(told).toEqual({ refused: ['a DNS query that ends half-way'], omitted: 0 });
    const client = connect({ host: '127.0.0.1', port });
    client.on('error', () => {});
    client.write(Buffer.concat([Buffer.from([0, 0]), frame('a.test', 1), frame('b.test', 2)]));
    await closed(client);
    expect(told).toEqual({ refused: ['a DNS query that ends half-way', 'no DNS query'], omitted: 2 });
  });

  it('lets what is faster than the pace wait, and loses nothing of it', async () => {
    const { port } = await startTcp();
    const queries = Buffer.concat(Array.from({ length: 3000 }, (_, id) => frame('api.test', id)));
    const client = connect({ host: '127.0.0.1', port });
    const received: Buffer[] = [];
    client.on('data', (chunk: Buffer) => received.push(chunk));
    client.write(queries);
    await expect.poll(() => frames(Buffer.concat(received)).length, { timeout: 10_000 }).toBe(3000);
    client.destroy();
    expect(frames(Buffer.concat(received)).map(({ id }) => id)).toEqual(Array.from({ length: 3000 }, (_, id) => id));
    expect(told).toEqual({ refused: [], omitted: 0 });
  });

  it('serves a bounded number of clients, and goes on when some leave', async () => {
    const { port, clients } = await startTcp();
    const idle = Array.from({ length: 64 }, () => connect({ host: '127.0.0.1', port }));
    await expect.poll(() => clients.size).toBe(64);
    const late = connect({ host: '127.0.0.1', port });
    late.on('error', () => {});
    await closed(late);
    expect(told.refused).toEqual(['more than 64 DNS connections at one time']);
    for (const client of idle) client.destroy();
    await expect.poll(() => clients.size).toBe(0);
    expect(frames(await exchange(port, [frame('api.test', 5)]))).toEqual([{ id: 5, answers: 1 }]);
  });
});
