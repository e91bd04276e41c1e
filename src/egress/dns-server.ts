import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';

import { closeAll } from '../launcher/descriptors.js';
import type { DnsReply } from './dns.js';
import { Pace } from './pace.js';

/** A socket that is already bound (a descriptor from inside the sandbox), or where to bind one. */
export type Endpoint = { fd: number } | { host: string; port: number };

export type Responder = (query: Buffer, transport: 'udp' | 'tcp') => DnsReply;

// A query has one name of 255 bytes and some EDNS options.
const LONGEST_QUERY = 4096;
const MAX_TCP_CLIENTS = 64;
const TCP_IDLE_MS = 30_000;
const QUERIES_PER_SECOND = 2000;

/** Serves DNS over datagrams. Rejects where the socket cannot be used; then it is closed. */
export async function serveUdp(endpoint: Endpoint, respond: Responder): Promise<UdpSocket> {
  const socket = createSocket('udp4');
  // A guest that floods costs the host no more than this; its resolver would ask again.
  const pace = new Pace(QUERIES_PER_SECOND);
  socket.on('message', (query, sender) => {
    if (query.length > LONGEST_QUERY || !pace.take()) return;
    const { reply } = respond(query, 'udp');
    // A send can fail only for the guest's own reasons (its socket or its whole namespace is gone).
    if (reply) socket.send(reply, sender.port, sender.address, () => {});
  });
  try {
    // Node tells of a socket that is bound already before bind() returns.
    const listening = once(socket, 'listening');
    if ('fd' in endpoint) socket.bind({ fd: endpoint.fd });
    else socket.bind(endpoint.port, endpoint.host);
    await listening;
  } catch (error) {
    socket.close();
    // Then nobody has taken it over.
    if ('fd' in endpoint && (error as NodeJS.ErrnoException).code === 'ERR_INVALID_FD_TYPE') closeAll([endpoint.fd]);
    throw error;
  }
  // After the set-up only late ICMP errors arrive here.
  socket.on('error', () => {});
  return socket;
}

/** Serves DNS over streams: two bytes of length before each message, any number of messages. */
export async function serveTcp(endpoint: Endpoint, respond: Responder): Promise<{ server: Server; clients: Set<Socket> }> {
  const clients = new Set<Socket>();
  const pace = new Pace(QUERIES_PER_SECOND);
  const server = createServer((client) => {
    if (clients.size >= MAX_TCP_CLIENTS) return void client.resetAndDestroy();
    clients.add(client);
    client.on('close', () => clients.delete(client));
    client.on('error', () => client.destroy());
    client.setTimeout(TCP_IDLE_MS, () => client.destroy());
    serveClient(client, respond, pace);
  });
  server.listen(endpoint);
  await once(server, 'listening');
  server.on('error', () => {});
  return { server, clients };
}

function serveClient(client: Socket, respond: Responder, pace: Pace): void {
  let pending: Buffer = Buffer.alloc(0);
  client.on('data', (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    let drained = true;
    while (pending.length >= 2) {
      const length = pending.readUInt16BE(0);
      if (length > LONGEST_QUERY) return void client.destroy();
      if (pending.length < 2 + length) break;
      if (!pace.take()) return void client.destroy();
      const { reply } = respond(pending.subarray(2, 2 + length), 'tcp');
      pending = pending.subarray(2 + length);
      if (!reply) return void client.destroy();
      drained = client.write(framed(reply)) && drained;
    }
    pending = Buffer.from(pending);
    if (drained) return;
    // Who does not read the replies asks no further questions.
    client.pause();
    client.once('drain', () => client.resume());
  });
}

function framed(reply: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(reply.length + 2);
  frame.writeUInt16BE(reply.length, 0);
  reply.copy(frame, 2);
  return frame;
}
