/** What a guest can cost the host by its channel: the other side here is a bare socket that knows the key. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';

import { Channel } from '../../src/guest/channel.js';
import { encodeFrame, KEY_BYTES } from '../../src/guest/frames.js';
import { parseForeignJson } from '../../src/guest/json.js';

const password = Buffer.from('p'.repeat(32));

interface Heard {
  channel: Channel;
  port: number;
  messages: { t: string; id?: number }[];
  broken: Error[];
}

async function listening(onMessage: (heard: Heard, message: { t: string; id?: number }) => void = () => undefined): Promise<Heard> {
  const heard = { messages: [], broken: [] } as unknown as Heard;
  heard.channel = new Channel({
    onMessage(message) {
      heard.messages.push(message);
      onMessage(heard, message);
    },
    onBroken: (error) => heard.broken.push(error),
  });
  heard.port = await heard.channel.listenAmongOthers(password);
  onTestFinished(() => heard.channel.close());
  return heard;
}

async function guest(port: number): Promise<{ socket: Socket; say(...texts: string[]): void }> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  socket.write(password);
  await once(socket, 'readable');
  const key = socket.read(KEY_BYTES) as Buffer;
  return { socket, say: (...texts) => void socket.write(Buffer.concat(texts.flatMap((text) => [key, encodeFrame(text)]))) };
}

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 400 && !condition(); tries++) await sleep(20);
  expect(condition()).toBe(true);
}

const call = (id: number, args: unknown = null): string => JSON.stringify({ t: 'call', id, method: 'f', args });

describe('a channel', () => {
  it('survives strangers that reset, that say nothing, and that go when it is closed', async () => {
    const { channel, port, messages } = await listening();
    const strangers = Array.from({ length: 300 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
    await Promise.all(strangers.map((stranger) => once(stranger, 'connect').catch(() => null)));
    for (const stranger of strangers.slice(0, 100)) {
      stranger.write('x');
      stranger.resetAndDestroy();
    }
    await sleep(100);
    const { say } = await guest(port);
    say('{"t":"log","text":"log: mine"}');
    await until(() => messages.length === 1);
    channel.close();
    await until(() => strangers.every(({ destroyed }) => destroyed));
  });

  it('hears no more calls than 4 Mi characters of them before they are answered', async () => {
    const { channel, port, messages } = await listening();
    const { say } = await guest(port);
    const args = 'x'.repeat(1_000_000);
    for (let id = 1; id <= 40; id++) say(call(id, args));
    await until(() => messages.length >= 5);
    await sleep(300);
    expect(messages.length).toBe(5);
    for (let id = 1; id <= 40; id++) {
      await until(() => messages.length >= id);
      channel.reply(id, { ok: true, value: null });
    }
    expect(messages.map(({ id }) => id)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
  });

  it('answers no further while the guest does not read', async () => {
    const value = 'x'.repeat(1_000_000);
    const { port, messages } = await listening(({ channel }, { id = 0 }) => channel.reply(id, { ok: true, value }));
    const { socket, say } = await guest(port);
    socket.pause();
    say(...Array.from({ length: 200 }, (_, index) => call(index + 1)));
    await until(() => messages.length > 0);
    await sleep(500);
    expect(messages.length).toBeLessThan(40);
    socket.resume();
    await until(() => messages.length === 200);
  });

  it('gives others a turn among many small messages, in their order', async () => {
    let turns = 0;
    const { port, messages } = await listening();
    const { say } = await guest(port);
    const tick = () => {
      turns++;
      if (messages.length < 1600) setImmediate(tick);
    };
    tick();
    say(...Array.from({ length: 1600 }, (_, index) => `{"t":"log","text":"log: ${index}"}`));
    await until(() => messages.length === 1600);
    expect(turns).toBeGreaterThan(90);
    expect(messages.map((message) => (message as unknown as { text: string }).text)).toEqual(Array.from({ length: 1600 }, (_, index) => `log: ${index}`));
  });

  it('is broken by a call under the id of another', async () => {
    const { port, broken } = await listening();
    const { say } = await guest(port);
    say(call(1), call(1));
    await until(() => broken.length === 1);
    expect(broken[0]?.message).toMatch(/id of one that is not answered/);
  });
});

describe('JSON of a guest', () => {
  it.each([
    ['arrays', '[' + '[],'.repeat(100_000) + '1]'],
    ['objects', '[' + '{},'.repeat(100_000) + '1]'],
    ['nested arrays', '[' + `${'['.repeat(400)}${']'.repeat(400)},`.repeat(300) + '1]'],
    ['names', `{${Array.from({ length: 200_001 }, (_, index) => `"${index}":0`).join()}}`],
  ])('with too many %s is refused', (_, text) => {
    expect(() => parseForeignJson(text)).toThrow(/^JSON with more than/);
  });

  it('may be as long as a frame, and have colons and brackets in its texts', () => {
    const numbers = Array.from({ length: 300_000 }, (_, index) => index);
    expect(parseForeignJson(JSON.stringify(numbers))).toEqual(numbers);
    const text = '[{:}]'.repeat(200_000);
    expect(parseForeignJson(JSON.stringify([text]))).toEqual([text]);
  });

  it.each(['__proto__', '\\u005f_proto__', '__pro\\u0074o__', '\\u005F\\u005F\\u0070\\u0072\\u006F\\u0074\\u006f\\u005f\\u005F'])('has no member %s', (name) => {
    expect(Object.getOwnPropertyNames(parseForeignJson(`{"a":{"${name}":{"b":1},"c":2}}`) as object)).toEqual(['a']);
    expect(Object.getOwnPropertyNames((parseForeignJson(`{"a":{"${name}":{"b":1},"c":2}}`) as { a: object }).a)).toEqual(['c']);
  });
});
