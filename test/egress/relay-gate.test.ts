import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';

import type { Gate } from '../../src/egress/relay.js';
import { drain } from './support/gateway-fixture.js';
import { drainHalf, join, next } from './support/joined.js';

/** Holds until it has seen `length` bytes. */
function gateOf(length: number, verdict: 'pass' | { refuse: string } = 'pass'): Gate {
  let seen = 0;
  return {
    unfinished: 'unfinished',
    push(chunk) {
      seen += chunk.length;
      return seen >= length ? verdict : 'hold';
    },
  };
}

describe('Relay with a gate', () => {
  it('lets the server speak first, and holds the bytes of the guest alone', async () => {
    const { guest, server, relay } = await join({ gate: gateOf(6) });
    server.write('banner');
    expect(await next(guest)).toBe('banner');
    guest.write('abc');
    const early = await Promise.race([next(server), sleep(100, 'nothing')]);
    expect(early).toBe('nothing');
    guest.write('def');
    expect(await next(server)).toBe('abcdef');
    guest.write('more');
    expect(await next(server)).toBe('more');
    relay.stop('enough');
    expect(await relay.done).toMatchObject({ bytesSent: 10, bytesReceived: 6 });
  });

  it('lets no byte through that is refused', async () => {
    const { guest, server, relay } = await join({ gate: gateOf(4, { refuse: 'not you' }) });
    const seen = drain(server);
    guest.write('abcd');
    guest.write('efgh');
    expect((await drain(guest)).error).toBe('ECONNRESET');
    expect((await seen).bytes.length).toBe(0);
    expect(await relay.done).toEqual({ reason: 'not you', refused: true, bytesSent: 0, bytesReceived: 0 });
  });

  it('refuses a guest that ends in the middle of what is held, and passes on an end before the first byte', async () => {
    const half = await join({ gate: gateOf(4) });
    half.guest.end('abc');
    expect((await drain(half.server)).bytes.length).toBe(0);
    expect(await half.relay.done).toMatchObject({ reason: 'unfinished', refused: true, bytesSent: 0 });
    const silent = await join({ gate: gateOf(4) });
    silent.guest.end();
    await drainHalf(silent.server);
    silent.server.end('all the same');
    expect((await drain(silent.guest)).bytes.toString()).toBe('all the same');
  });
});
