import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

import { Relay } from '../../../src/egress/relay.js';
import type { RelayOptions } from '../../../src/egress/relay.js';
import { serve } from './gateway-fixture.js';

export interface Joined {
  relay: Relay;
  /** The guest's own end. */
  guest: Socket;
  /** The server's own end. */
  server: Socket;
}

/** A relay between two real TCP connections, and the far end of each. */
export async function join(options: Partial<RelayOptions> = {}): Promise<Joined> {
  const [guest, guestSide] = await pair();
  const [serverSide, server] = await pair();
  const relay = new Relay(guestSide, serverSide, { gate: null, budget: { left: Number.POSITIVE_INFINITY }, run: { ending: false }, idleTimeoutMs: 60_000, ...options });
  return { relay, guest, server };
}

/** Both ends of one connection: the one that connected, the one that was accepted. */
export async function pair(): Promise<[Socket, Socket]> {
  let accept: (socket: Socket) => void = () => {};
  const accepted = new Promise<Socket>((resolve) => (accept = resolve));
  const { server, port } = await serve((socket) => accept(socket));
  const client = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
  client.on('error', () => {});
  await once(client, 'connect');
  const socket = await accepted;
  server.close();
  return [client, socket];
}

/** Everything until the other side ends its direction; this one stays open. */
export async function drainHalf(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** The next bytes, as text. */
export async function next(socket: Socket): Promise<string> {
  const [chunk] = await once(socket, 'data');
  return String(chunk);
}

/** Reads until nothing more comes. `reset`: by the socket's own word, as libuv tells of a plain end when bytes came just before a reset. */
export async function readToEnd(socket: Socket): Promise<{ bytes: number; reset: boolean }> {
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => (bytes += chunk.length));
  const over = new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
  socket.resume();
  await over;
  const error = socket.errored ?? (await new Promise<Error | null>((resolve) => socket.write('?', (failure) => resolve(failure ?? null))));
  return { bytes, reset: (error as NodeJS.ErrnoException | null)?.code === 'ECONNRESET' };
}
