import { createSocket } from 'node:dgram';
import { closeSync, fstatSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';

import { native } from '../../src/launcher/addon.js';
import type { PacketRequest } from '../../src/launcher/native.js';
import { compileFixture } from '../support/compile.js';
import { leftovers, newLeftovers } from '../support/leftovers.js';

const launcher = compileFixture('faulty-launcher.cc', { flags: ['-std=c++17'] });
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** A socket that nothing in this process knows of: a packet socket takes privileges, a bound UDP socket is read the same way. */
async function strangeSocket(): Promise<{ fd: number; send(count: number): Promise<void> }> {
  const descriptors = await new Promise<number[]>((resolve) => {
    const launch = native().launch({
      launcher,
      plan: Buffer.from('sockets 1\nexit 0'),
      withStdin: false,
      onRecord: (_, received) => resolve(received),
      onExit: async () => {
        const { stdout, stderr } = (await launch).takeStreams();
        for (const each of [stdout, stderr]) closeSync(each);
      },
    });
  });
  const [fd = -1] = descriptors;
  const port = Number.parseInt(ofSocket(fd, 1), 16);
  const sender = createSocket('udp4');
  ends.push(async () => {
    sender.close();
    closeSync(fd);
  });
  let next = 0;
  const send = async (count: number): Promise<void> => {
    for (let sent = 0; sent < count; sent++) await new Promise((resolve) => sender.send(`${next++}`, port, '127.0.0.1', resolve));
  };
  return { fd, send };
}

/** The second half of a field of /proc/net/udp, hexadecimal. */
function ofSocket(fd: number, field: number): string {
  const lines = readFileSync('/proc/net/udp', 'utf8').split('\n').map((line) => line.trim().split(/\s+/));
  return lines.find((fields) => fields[9] === String(fstatSync(fd).ino))?.[field]?.split(':')[1] ?? '';
}

/** Bytes that wait in a UDP socket. */
const queued = (fd: number): number => Number.parseInt(ofSocket(fd, 4), 16);

async function watched(): Promise<{ seen: string[]; send(count: number): Promise<void> }> {
  const { fd, send } = await strangeSocket();
  const seen: string[] = [];
  const watch = native().watchPackets({ fd, onPacket: (bytes) => seen.push(bytes.toString()) });
  ends.unshift(async () => void watch.close());
  return { seen, send };
}

describe('socketDrops', () => {
  it('tells what the kernel dropped, so that nothing is missing', async () => {
    const { fd, send } = await strangeSocket();
    expect(native().socketDrops(fd)).toBe(0);
    await send(3000);
    const dropped = native().socketDrops(fd);
    expect(dropped).toBeGreaterThan(0);
    let queued = 0;
    native().watchPackets({ fd, onPacket: () => void queued++ }).close();
    expect(queued).toBeGreaterThan(0);
    expect(queued + dropped).toBe(3000);
  });

  it('takes a number, and knows nothing of what is no socket', () => {
    expect(() => native().socketDrops('0' as never)).toThrow(TypeError);
    expect(native().socketDrops(1_000_000)).toBe(0);
  });
});

describe('watchPackets', () => {
  it('hands over each packet, in order, also those of a burst', async () => {
    const { seen, send } = await watched();
    await send(1);
    await expect.poll(() => seen).toEqual(['0']);
    await send(150);
    await expect.poll(() => seen.length).toBe(151);
    expect(seen).toEqual(Array.from({ length: 151 }, (_, index) => `${index}`));
  });

  it('gives out what is queued when it is closed, and nothing after that', async () => {
    const { fd, send } = await strangeSocket();
    // What was sent is delivered when the kernel comes to it.
    const delivered = async (): Promise<void> => {
      for (let before = -1; before !== queued(fd) || before === 0; await sleep(50)) before = queued(fd);
    };
    await send(100);
    await delivered();
    let seen = 0;
    const watch = native().watchPackets({ fd, onPacket: () => void seen++ });
    expect(watch.close()).toBe(0);
    expect(seen).toBe(100);
    await send(3);
    await delivered();
    expect(seen).toBe(100);
    expect(watch.close()).toBe(0);
    // The descriptor is the caller's still.
    expect(fstatSync(fd).isSocket()).toBe(true);
  });

  it('may be closed from its own callback', async () => {
    const { fd, send } = await strangeSocket();
    const seen: string[] = [];
    const watch = native().watchPackets({
      fd,
      onPacket(bytes) {
        seen.push(bytes.toString());
        watch.close();
      },
    });
    await send(3);
    await expect.poll(() => seen.length).toBeGreaterThan(0);
  });

  it('refuses what is no descriptor or no function, and leaves nothing', async () => {
    const before = leftovers();
    for (const wrong of [undefined, {}, { fd: 3 }, { fd: '3', onPacket() {} }, { fd: 3, onPacket: 1 }]) {
      expect(() => native().watchPackets(wrong as PacketRequest)).toThrow(TypeError);
    }
    expect(() => native().watchPackets({ fd: 1_000_000, onPacket() {} })).toThrow(expect.objectContaining({ code: 'EBADF' }));
    expect(newLeftovers(before, leftovers())).toEqual({});
  });
});
