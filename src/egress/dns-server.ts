import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';

import { closeAll } from '../launcher/descriptors.js';
import { DnsStream, LONGEST_QUERY } from './dns-stream.js';
import { Pace } from './pace.js';

/** A socket that is already bound (a descriptor from inside the sandbox), or where to bind one. */
export type Endpoint = { fd: number } | { host: string; port: number };

/** Who answers queries, and hears of all that are not. */
export interface DnsDesk {
  /** The answer; null where none is due. */
  respond(query: Buffer, transport: 'udp' | 'tcp'): Buffer | null;
  /** Something that was no query, and was not answered. */
  refuse(reason: string): void;
  /** Queries that nobody looked at. */
  omit(count: number): void;
  /** Something came. */
  stir(): void;
  /** A connection was accepted. */
  accept(): void;
}

export interface DnsStreams {
  server: Server;
  clients: Set<Socket>;
  /** The guest is gone: what it has sent is read to its end at once, whoever reads the replies. */
  guestGone(): void;
}

const MAX_TCP_CLIENTS = 64;
const QUERIES_PER_SECOND = 2000;
/** Each takes the event loop some time. */
const QUERIES_AT_ONCE = 500;

/** Serves DNS over datagrams. Rejects where the socket cannot be used; then it is closed. */
export async function serveUdp(endpoint: Endpoint, desk: DnsDesk): Promise<UdpSocket> {
  const socket = createSocket('udp4');
  // A guest that floods costs the host no more than this; its resolver would ask again.
  const pace = new Pace(QUERIES_PER_SECOND, undefined, QUERIES_AT_ONCE);
  socket.on('message', (query, sender) => {
    desk.stir();
    if (!pace.take()) return desk.omit(1);
    if (query.length > LONGEST_QUERY) return desk.refuse(`DNS query of ${query.length} bytes`);
    const reply = desk.respond(query, 'udp');
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
export async function serveTcp(endpoint: Endpoint, desk: DnsDesk): Promise<DnsStreams> {
  const streams = new Map<Socket, DnsStream>();
  const clients = new Set<Socket>();
  const pace = new Pace(QUERIES_PER_SECOND, undefined, QUERIES_AT_ONCE);
  const server = createServer({ allowHalfOpen: true }, (client) => {
    desk.stir();
    desk.accept();
    if (clients.size >= MAX_TCP_CLIENTS) {
      client.on('error', () => {});
      client.resetAndDestroy();
      return desk.refuse(`more than ${MAX_TCP_CLIENTS} DNS connections at one time`);
    }
    clients.add(client);
    streams.set(client, new DnsStream(client, desk, pace));
    client.on('close', () => {
      clients.delete(client);
      streams.delete(client);
    });
  });
  server.listen(endpoint);
  await once(server, 'listening');
  // As at the other listeners: the host is out of descriptors.
  server.on('error', (error) => desk.refuse(`not accepted: ${error.message}`));
  return {
    server,
    clients,
    guestGone: () => {
      for (const stream of streams.values()) stream.guestGone();
    },
  };
}
