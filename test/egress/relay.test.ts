import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';

import { patience } from '../support/lane.js';
import { Relay } from '../../src/egress/relay.js';
import { drain } from './support/gateway-fixture.js';
import { drainHalf, join, next, pair, readToEnd } from './support/joined.js';

describe('Relay', () => {
  it('passes bytes both ways, ends with both directions, and counts', async () => {
    const { relay, guest, server } = await join();
    guest.write('question');
    expect(await next(server)).toBe('question');
    server.end('the answer');
    guest.end();
    expect((await drain(guest)).bytes.toString()).toBe('the answer');
    expect(await relay.done).toEqual({ reason: 'closed', refused: false, bytesSent: 8, bytesReceived: 10 });
  });

  it('keeps one direction open when the other has ended, either way round', async () => {
    const first = await join();
    first.guest.end('request');
    expect((await drainHalf(first.server)).toString()).toBe('request');
    await sleep(20);
    first.server.end('late response');
    expect((await drain(first.guest)).bytes.toString()).toBe('late response');
    const second = await join();
    second.server.end('greeting');
    expect((await drainHalf(second.guest)).toString()).toBe('greeting');
    await sleep(20);
    second.guest.end('late request');
    expect((await drain(second.server)).bytes.toString()).toBe('late request');
    expect(await second.relay.done).toMatchObject({ reason: 'closed', bytesSent: 12, bytesReceived: 8 });
  });

  it('turns a reset on one side into a reset on the other', async () => {
    const first = await join();
    const seen = drain(first.server);
    first.guest.write('x');
    await once(first.server, 'data');
    first.guest.resetAndDestroy();
    expect((await seen).error).toBe('ECONNRESET');
    expect(await first.relay.done).toMatchObject({ reason: 'reset by the guest', bytesSent: 1 });
    const second = await join();
    second.server.resetAndDestroy();
    expect((await drain(second.guest)).error).toBe('ECONNRESET');
    expect(await second.relay.done).toMatchObject({ reason: 'reset by the server', refused: false });
  });

  it('resets a side that still sends after the other is reset while an end is under way', async () => {
    const { relay, guest, server } = await join();
    guest.end('request');
    await once(server, 'data');
    server.resetAndDestroy();
    expect((await drain(guest)).error).toBe('ECONNRESET');
    expect((await relay.done).reason).toBe('reset by the server');
  });

  it('tells a reset right behind the last bytes from an end', async () => {
    for (const [from, to] of [['guest', 'server'], ['server', 'guest']] as const) {
      for (const waiting of [false, true]) {
        const [guest, guestSide] = await pair();
        const [serverSide, server] = await pair();
        const ends = { guest, server };
        ends[from].pause();
        // The reset meets bytes which the kernel had no room for, or none.
        if (waiting) (from === 'guest' ? guestSide : serverSide).write(Buffer.alloc(32 << 20));
        const relay = new Relay(guestSide, serverSide, { gate: null, budget: { left: 100_000 }, run: { ending: false }, idleTimeoutMs: 60_000 });
        ends[from].write(Buffer.alloc(100_000));
        ends[from].resetAndDestroy();
        expect((await readToEnd(ends[to])).reset).toBe(true);
        expect((await relay.done).reason).toBe(`reset by the ${from}`);
        ends[to].destroy();
      }
    }
  });

  it('holds the guest to the pace of a slow server, and the other way round', async () => {
    for (const [from, to] of [['guest', 'server'], ['server', 'guest']] as const) {
      const joined = await join();
      joined[to].pause();
      const chunk = Buffer.alloc(1 << 20);
      let written = 0;
      // What fits into the kernel's buffers and ours, and then no more.
      while (written < 256 && (await Promise.race([new Promise((resolve) => joined[from].write(chunk, () => resolve(true))), sleep(500, false)]))) written += 1;
      expect(written).toBeLessThan(200);
      joined.relay.stop('enough');
      expect(await joined.relay.done).toMatchObject({ reason: 'enough' });
      joined[from].destroy();
      joined[to].destroy();
    }
  });

  it('loses nothing to a slow reader', async () => {
    const { relay, guest, server } = await join();
    const total = 24 << 20;
    for (let sent = 0; sent < total; sent += 1 << 20) server.write(Buffer.alloc(1 << 20, sent >> 20));
    server.end();
    let received = 0;
    let intact = true;
    guest.on('data', (chunk: Buffer) => {
      intact &&= chunk[0] === received >> 20;
      received += chunk.length;
      guest.pause();
      setTimeout(() => guest.resume(), 2);
    });
    await once(guest, 'end');
    guest.end();
    expect(received).toBe(total);
    expect(intact).toBe(true);
    expect(await relay.done).toMatchObject({ reason: 'closed', bytesReceived: total });
  });

  it('moves 256 MiB each way at once with flat memory', { timeout: patience(60_000) }, async () => {
    const { relay, guest, server } = await join();
    const total = 256 << 20;
    const chunk = Buffer.alloc(1 << 16, 7);
    const send = async (socket: Socket) => {
      for (let sent = 0; sent < total; sent += chunk.length) if (!socket.write(chunk)) await once(socket, 'drain');
      socket.end();
    };
    const count = async (socket: Socket) => {
      let bytes = 0;
      for await (const part of socket.iterator({ destroyOnReturn: false })) bytes += (part as Buffer).length;
      return bytes;
    };
    let peak = 0;
    const before = process.memoryUsage().rss;
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 20);
    const [, , up, down] = await Promise.all([send(guest), send(server), count(server), count(guest)]);
    clearInterval(watch);
    expect([up, down]).toEqual([total, total]);
    expect(await relay.done).toMatchObject({ reason: 'closed', bytesSent: total, bytesReceived: total });
    expect(peak - before).toBeLessThan(160 << 20);
  });

  it('ends a connection on which nothing moves, and not one on which something does', async () => {
    const idleTimeoutMs = patience(300);
    const { relay, guest, server } = await join({ idleTimeoutMs });
    const echo = setInterval(() => server.write('.'), 100);
    await sleep(idleTimeoutMs * 3);
    expect(guest.closed).toBe(false);
    clearInterval(echo);
    expect((await drain(guest)).error).toBe('ECONNRESET');
    expect(await relay.done).toMatchObject({ reason: `idle for ${idleTimeoutMs} ms`, refused: false });
  });

  it('waits longer for a reader that has bytes to take, and says how long it was', async () => {
    const idleTimeoutMs = 50;
    const { relay, guest, server } = await join({ idleTimeoutMs });
    server.pause();
    guest.write(Buffer.alloc(32 << 20)); // more than the kernel holds
    expect(await relay.done).toMatchObject({ reason: `idle for ${8 * idleTimeoutMs} ms` });
    server.destroy();
    guest.destroy();
  });

  it('leaves to the kernel what a slow reader has not taken yet of a stream that is over', async () => {
    const { relay, guest, server } = await join({ idleTimeoutMs: patience(200) });
    const total = 200_000; // less than the kernel holds
    guest.pause();
    server.end(Buffer.alloc(total));
    expect(await relay.done).toMatchObject({ bytesReceived: total, reason: expect.stringMatching(/^idle for/) });
    const rest = drain(guest);
    guest.resume();
    const { bytes, error } = await rest;
    expect({ bytes: bytes.length, error }).toEqual({ bytes: total, error: null });
  });

  it('ends with a reset what is cut short, its end included', async () => {
    for (const cut of [(relay: Relay) => relay.stop('enough'), null]) {
      for (const ended of ['guest', 'server'] as const) {
        const [guest, guestSide] = await pair();
        const [serverSide, server] = await pair();
        const [to, reader] = ended === 'guest' ? [serverSide, server] : [guestSide, guest];
        reader.pause();
        const total = 32 << 20; // more than the kernel holds
        to.write(Buffer.alloc(total));
        const relay = new Relay(guestSide, serverSide, { gate: null, budget: { left: 1 }, run: { ending: false }, idleTimeoutMs: cut === null ? 50 : 60_000 });
        (ended === 'guest' ? guest : server).end();
        await expect.poll(() => to.writableEnded).toBe(true);
        cut?.(relay);
        await relay.done;
        const { bytes, reset } = await readToEnd(reader);
        expect(reset).toBe(true);
        expect(bytes).toBeLessThan(total);
        guest.destroy();
        server.destroy();
      }
    }
  });

  it('ends at the byte limit, which counts both directions and all connections', async () => {
    const budget = { left: 100 };
    const first = await join({ budget });
    first.guest.write(Buffer.alloc(60));
    await once(first.server, 'data');
    const second = await join({ budget });
    second.server.write(Buffer.alloc(40));
    await once(second.guest, 'data');
    expect(budget.left).toBe(0);
    first.guest.write('x');
    expect(await first.relay.done).toEqual({ reason: 'byte limit of the run reached', refused: false, bytesSent: 60, bytesReceived: 0 });
    expect((await drain(first.guest)).error).toBe('ECONNRESET');
    second.guest.write('x');
    expect(await second.relay.done).toMatchObject({ reason: 'byte limit of the run reached', bytesReceived: 40 });
  });

  it('delivers what a guest that is gone has sent, without waiting for the server', async () => {
    const { relay, guest, server } = await join();
    server.pause();
    const total = 8 << 20;
    const written = new Promise((resolve) => guest.end(Buffer.alloc(total), () => resolve(true)));
    relay.guestGone();
    await sleep(50);
    let received = 0;
    server.on('data', (chunk: Buffer) => (received += chunk.length));
    server.resume();
    await written;
    expect(await relay.done).toMatchObject({ reason: 'closed', bytesSent: total });
    await expect.poll(() => received).toBe(total);
  });

  it('ends the other side when one is closed before it begins', async () => {
    for (const [ending, reason] of [[false, 'closed before it began'], [true, 'the run ended']] as const) {
      const [guest, guestSide] = await pair();
      const [serverSide, server] = await pair();
      guestSide.destroy();
      await once(guestSide, 'close');
      const relay = new Relay(guestSide, serverSide, { gate: null, budget: { left: 1 }, run: { ending }, idleTimeoutMs: 60_000 });
      expect((await drain(server)).error).toBe('ECONNRESET');
      expect(await relay.done).toMatchObject({ reason });
      guest.destroy();
    }
  });

  it('stops at once when told to, with a reset on both sides and the first reason', async () => {
    const { relay, guest, server } = await join();
    relay.stop('first');
    relay.stop('second');
    expect((await drain(guest)).error).toBe('ECONNRESET');
    expect((await drain(server)).error).toBe('ECONNRESET');
    expect(await relay.done).toMatchObject({ reason: 'first' });
  });

  it('carries 100 connections at once', async () => {
    await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const { relay, guest, server } = await join();
        server.pipe(server);
        const payload = Buffer.alloc(50_000, index);
        guest.end(payload);
        expect((await drain(guest)).bytes.equals(payload)).toBe(true);
        expect(await relay.done).toMatchObject({ reason: 'closed', bytesSent: 50_000, bytesReceived: 50_000 });
      }),
    );
  });
});
