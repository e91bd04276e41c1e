/** The host's end of the channel, against a peer that says what it likes. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';

import { Channel } from '../../src/guest/channel.js';
import { KEY_BYTES } from '../../src/guest/frames.js';
import type { GuestMessage } from '../../src/guest/messages.js';

interface Peer {
  channel: Channel;
  heard: GuestMessage[];
  broken: string[];
  socket: Socket;
  key: Buffer;
  port: number;
  /** Sends a frame, with the key unless told otherwise. */
  say(text: string | Buffer, key?: Buffer): void;
}

/** A channel on a real listener, with this test in the sandbox's place. */
async function meet(onMessage: (message: GuestMessage) => void = () => undefined): Promise<Peer> {
  const { fd, port } = boundSocket();
  const heard: GuestMessage[] = [];
  const broken: string[] = [];
  const channel = new Channel({
    onMessage: (message) => {
      heard.push(message);
      onMessage(message);
    },
    onBroken: (error) => broken.push(error.message),
  });
  channel.listen(fd);
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'readable');
  const key = socket.read(KEY_BYTES) as Buffer;
  onTestFinished(() => {
    channel.close();
    socket.destroy();
  });
  const say = (text: string | Buffer, with_ = key) => {
    const bytes = Buffer.from(text as string);
    const head = Buffer.alloc(4);
    head.writeUInt32LE(bytes.length);
    socket.write(Buffer.concat([with_, head, bytes]));
  };
  return { channel, heard, broken, socket, key, port, say };
}

/** A socket that is bound and belongs to nobody, as the launcher hands one over. */
function boundSocket(): { fd: number; port: number } {
  const { TCP, constants } = (process as unknown as { binding(name: string): TcpWrap }).binding('tcp_wrap');
  const handle = new TCP(constants.SERVER);
  if (handle.bind('127.0.0.1', 0) !== 0) throw new Error('cannot bind');
  const name = { port: 0 };
  handle.getsockname(name);
  return { fd: handle.fd, port: name.port };
}

interface TcpWrap {
  TCP: new (kind: number) => { fd: number; bind(address: string, port: number): number; getsockname(into: { port: number }): number };
  constants: { SERVER: number };
}

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 200 && !condition(); tries++) await sleep(10);
  expect(condition()).toBe(true);
}

describe('the channel', () => {
  it('hears what is said with its key, in whatever pieces it comes', async () => {
    const { heard, socket, key } = await meet();
    const bytes = Buffer.from('{"t":"log","text":"log: größe"}');
    const head = Buffer.alloc(4);
    head.writeUInt32LE(bytes.length);
    const frame = Buffer.concat([key, head, bytes]);
    for (const byte of frame) {
      socket.write(Buffer.from([byte]));
      await sleep(1);
    }
    socket.write(Buffer.concat([frame, frame, frame.subarray(0, 30)]));
    await sleep(20);
    socket.write(frame.subarray(30));
    await until(() => heard.length === 4);
    expect(new Set(heard.map((message) => JSON.stringify(message)))).toEqual(new Set(['{"t":"log","text":"log: größe"}']));
  });

  it('passes over what comes without it, before, between and in pieces of the key', async () => {
    const { heard, broken, socket, key, say } = await meet();
    say('{"t":"result","output":"forged"}', Buffer.alloc(KEY_BYTES));
    socket.write(Buffer.alloc(100_000, 1));
    say('{"t":"log","text":"log: 1"}');
    socket.write(key.subarray(0, 7));
    say('{"t":"log","text":"log: 2"}');
    socket.write(Buffer.concat([key.subarray(0, 15), Buffer.from([key[15] === 0 ? 1 : 0])]));
    say('{"t":"log","text":"log: 3"}');
    await until(() => heard.length === 3);
    expect(heard).toEqual(['1', '2', '3'].map((text) => ({ t: 'log', text: `log: ${text}` })));
    expect(broken).toEqual([]);
  });

  it('lets one in and no other', async () => {
    const { port } = await meet();
    const second = connect(port, '127.0.0.1');
    const [error] = await Promise.race([once(second, 'error'), once(second, 'close'), sleep(2000, ['open'])]);
    expect(error).not.toBe('open');
  });

  const wrong: Record<string, string | Buffer> = {
    'not JSON': 'junk',
    'no object': '1',
    'of no type': '{}',
    'of an unknown type': '{"t":"other"}',
    'with more than is known': '{"t":"log","text":"log: x","more":1}',
    'without a level': '{"t":"log","text":"x"}',
    'of no known level': '{"t":"log","text":"fatal: x"}',
    'with a level that is none': '{"t":"log","text":"a\\nlog: x"}',
    'with a number for a text': '{"t":"log","text":1}',
    'with a text for an id': '{"t":"call","id":"1","method":"a"}',
    'with a negative id': '{"t":"call","id":-1,"method":"a"}',
    'with half an id': '{"t":"call","id":1.5,"method":"a"}',
    'with an id beyond integers': '{"t":"call","id":1e300,"method":"a"}',
    'without a method': '{"t":"call","id":1,"method":""}',
    'with a long method': `{"t":"call","id":1,"method":"${'m'.repeat(1000)}"}`,
    'a failure without a reason': '{"t":"failure"}',
    'a result with a reason': '{"t":"result","output":1,"error":"x"}',
    'too deep': '['.repeat(100_000) + ']'.repeat(100_000),
    'too deep, but for a string': `{"t":"log","text":${'['.repeat(600)}"\\"]]]"${']'.repeat(600)}}`,
    'not UTF-8': Buffer.from([0x22, 0xff, 0xfe, 0x22]),
  };
  it.each(Object.entries(wrong))('ends with a message that is %s', async (_, text) => {
    const { heard, broken, say } = await meet();
    say(text);
    say('{"t":"log","text":"log: after"}');
    await until(() => broken.length > 0);
    await sleep(20);
    expect(broken).toHaveLength(1);
    expect(heard).toEqual([]);
  });

  it('ends with a frame that is longer than any may be, before it comes', async () => {
    for (const length of [2 * 1024 * 1024 + 1, 0xffff_ffff]) {
      const { broken, socket, key } = await meet();
      const head = Buffer.alloc(4);
      head.writeUInt32LE(length);
      socket.write(Buffer.concat([key, head]));
      await until(() => broken.length === 1);
      expect(broken[0]).toContain(String(length));
    }
  });

  it('ends with junk that has no end', async () => {
    const { broken, socket } = await meet();
    for (let mib = 0; mib < 17; mib++) socket.write(Buffer.alloc(1024 * 1024));
    await until(() => broken.length === 1);
    expect(broken[0]).toMatch(/bytes of no frame/);
  });

  it('ends with more messages than any run has', async () => {
    const { broken, heard, key, socket } = await meet();
    const text = Buffer.from('{"t":"log","text":"log: "}');
    const head = Buffer.alloc(4);
    head.writeUInt32LE(text.length);
    const thousand = Buffer.concat(Array.from({ length: 1000 }, () => Buffer.concat([key, head, text])));
    for (let batch = 0; batch < 120 && broken.length === 0; batch++) if (!socket.write(thousand)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
    await until(() => broken.length === 1);
    expect(heard).toHaveLength(110_000);
  });

  it('is a result like any other when it holds the largest frame', async () => {
    const { heard, say } = await meet();
    const output = 'x'.repeat(2 * 1024 * 1024 - '{"t":"result","output":""}'.length);
    say(JSON.stringify({ t: 'result', output }));
    await until(() => heard.length === 1);
    expect(heard[0]).toEqual({ t: 'result', output });
  });

  it('hears no more calls than it has answered, but for a few hundred', async () => {
    const ids: number[] = [];
    const peer = await meet((message) => {
      if (message.t === 'call') ids.push(message.id);
    });
    for (let id = 1; id <= 20_000; id++) peer.say(`{"t":"call","id":${id},"method":"${'m'.repeat(200)}"}`);
    await sleep(500);
    // What came in one chunk with the call that was one too many is heard as well.
    expect(ids.length).toBeGreaterThanOrEqual(256);
    expect(ids.length).toBeLessThan(2000);
    const before = ids.length;
    for (const id of [...ids]) peer.channel.reply(id, { ok: true, value: null });
    await until(() => ids.length > before);
  });

  it('stops hearing a guest that does not read what it asked for', async () => {
    let calls = 0;
    const peer = await meet((message) => {
      if (message.t !== 'call') return;
      calls++;
      peer.channel.reply(message.id, { ok: true, value: 'x'.repeat(1024 * 1024) });
    });
    peer.socket.pause();
    for (let id = 1; id <= 5000; id++) peer.say(`{"t":"call","id":${id},"method":"${'m'.repeat(400)}"}`);
    await sleep(1500);
    expect(calls).toBeLessThan(1000);
  });
});
