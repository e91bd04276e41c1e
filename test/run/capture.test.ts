import { PassThrough } from 'node:stream';
import { setImmediate } from 'node:timers/promises';

import fc from 'fast-check';
import { expect, it } from 'vitest';

import { Capture } from '../../src/run/capture.js';
import type { OnChunk } from '../../src/run/capture.js';

async function captured(chunks: Uint8Array[], maxBytes: number, onChunk: OnChunk | null = null, keep = true) {
  const stream = new PassThrough();
  let overflows = 0;
  const thrown: unknown[] = [];
  const capture = new Capture(stream, {
    maxBytes,
    keep,
    onChunk,
    onOverflow: () => overflows++,
    onThrow: (error) => thrown.push(error),
  });
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  await capture.ended;
  return { capture, thrown, overflows: () => overflows };
}

it('keeps everything up to exactly the cap', async () => {
  const { capture, overflows } = await captured([Buffer.from('abc'), Buffer.from('de')], 5);
  expect(capture.text()).toBe('abcde');
  expect(capture.truncated).toBe(false);
  expect(overflows()).toBe(0);
});

it('cuts at exactly the cap, tells once, and reads on to the end', async () => {
  const { capture, overflows } = await captured([Buffer.alloc(70, 'a'), Buffer.alloc(70, 'b'), Buffer.alloc(1000, 'c')], 100);
  expect(capture.text()).toBe('a'.repeat(70) + 'b'.repeat(30));
  expect(capture.truncated).toBe(true);
  expect(capture.seen).toBe(1140);
  expect(overflows()).toBe(1);
});

it('leaves out a character that the cap cut through, and only then', async () => {
  expect((await captured([Buffer.from('aé€')], 5)).capture.text()).toBe('aé');
  expect((await captured([Buffer.from('aé€')], 6)).capture.text()).toBe('aé€');
  expect((await captured([Buffer.from('aé€').subarray(0, 5)], 5)).capture.text()).toBe('aé\ufffd');
});

it('passes chunks on inside the cap, as copies of their own where it cuts', async () => {
  const chunks: Buffer[] = [];
  await captured([Buffer.alloc(60, 'a'), Buffer.alloc(60_000, 'b'), Buffer.alloc(5, 'c')], 100, (chunk) => chunks.push(chunk));
  expect(Buffer.concat(chunks).toString()).toBe('a'.repeat(60) + 'b'.repeat(40));
  expect(chunks.at(-1)?.buffer.byteLength).toBeLessThan(60_000);
});

it('keeps its own bytes when a callback writes into the chunk', async () => {
  const { capture } = await captured([Buffer.from('abc')], 5, (chunk) => chunk.fill(0));
  expect(capture.text()).toBe('abc');
});

it('does not call a callback again that threw', async () => {
  let calls = 0;
  const { capture, thrown } = await captured([Buffer.from('a'), Buffer.from('b')], 5, () => {
    calls += 1;
    throw new Error('mine');
  });
  expect(thrown).toEqual([new Error('mine')]);
  expect(calls).toBe(1);
  expect(capture.text()).toBe('ab');
});

it('gives the longest prefix of whole characters that fits, however the text is split', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 50 }), fc.integer({ min: 1, max: 120 }), fc.integer({ min: 1, max: 7 }), async (text, cap, step) => {
      const bytes = Buffer.from(text);
      const chunks: Buffer[] = [];
      for (let at = 0; at < bytes.length; at += step) chunks.push(bytes.subarray(at, at + step));
      const { capture } = await captured(chunks, cap);
      let expected = '';
      for (const character of bytes.toString()) {
        if (Buffer.byteLength(expected + character) > cap) break;
        expected += character;
      }
      expect(capture.text()).toBe(expected);
      expect(capture.truncated).toBe(bytes.length > cap);
    }),
  );
});

it('does not keep more than the output when it comes a byte at a time', async () => {
  const stream = new PassThrough();
  const capture = new Capture(stream, { maxBytes: 1 << 20, keep: true, onChunk: null, onOverflow: () => undefined, onThrow: () => undefined });
  const before = process.memoryUsage().arrayBuffers;
  for (let index = 0; index < 200_000; index++) stream.emit('data', Buffer.from([65]));
  expect(capture.text().length).toBe(200_000);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 << 20);
});

it('reads no further until the promise of the callback is settled', async () => {
  const stream = new PassThrough();
  const came: string[] = [];
  const releases: (() => void)[] = [];
  const capture = new Capture(stream, {
    maxBytes: 100,
    keep: true,
    onChunk: (chunk) => {
      came.push(chunk.toString());
      return new Promise<void>((resolve) => releases.push(resolve));
    },
    onOverflow: () => undefined,
    onThrow: () => undefined,
  });
  stream.write('a');
  await setImmediate();
  stream.write('b');
  await setImmediate();
  expect({ came, isHeldUp: capture.isHeldUp }).toEqual({ came: ['a'], isHeldUp: true });
  releases[0]?.();
  await setImmediate();
  expect(came).toEqual(['a', 'b']);
  releases[1]?.();
  stream.end();
  await capture.ended;
  expect(capture.text()).toBe('ab');
});

it('takes a rejected promise as a throw, and reads on', async () => {
  let calls = 0;
  const { capture, thrown } = await captured([Buffer.from('a'), Buffer.from('b')], 5, () => {
    calls++;
    return Promise.reject(new Error('mine'));
  });
  expect(thrown).toEqual([new Error('mine')]);
  expect(calls).toBe(1);
  expect(capture.text()).toBe('ab');
});

it('keeps nothing where nothing is to be kept, and holds the cap all the same', async () => {
  const came: string[] = [];
  const { capture, overflows } = await captured([Buffer.from('abc'), Buffer.from('def')], 5, (chunk) => void came.push(chunk.toString()), false);
  expect(came.join('')).toBe('abcde');
  expect(capture.text()).toBe('');
  expect({ overflows: overflows(), truncated: capture.truncated, seen: capture.seen }).toEqual({ overflows: 1, truncated: true, seen: 6 });
});
