import { PassThrough, Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { runSandboxed } from '../../src/run/run.js';
import { feedStdin, releaseStdin, takeStdin } from '../../src/run/stdin.js';

function fed(source: string | Uint8Array | Readable): Promise<string> {
  const pipe = new PassThrough();
  takeStdin(source instanceof Readable ? source : null);
  feedStdin(pipe, source);
  return text(pipe);
}

it('writes text, bytes and streams, and then closes', async () => {
  expect(await fed('')).toBe('');
  expect(await fed('grüße')).toBe('grüße');
  expect(await fed(new Uint8Array([104, 105]))).toBe('hi');
  expect(await fed(Readable.from(['a', Buffer.from('b'), new Uint8Array([99])]))).toBe('abc');
});

it('never splits a character of a long text', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 65_530, max: 65_540 }), async (length) => {
      const long = 'x'.repeat(length) + '😀'.repeat(3);
      expect(await fed(long)).toBe(long);
    }),
    { numRuns: 20 },
  );
});

it('ends the input when the stream fails, is not of bytes, or is over already', async () => {
  const failing = Readable.from((function* () {
    yield 'before';
    throw new Error('disk');
  })());
  expect(await fed(failing)).toBe('before');
  expect(await fed(Readable.from([1, 2]))).toBe('');
  const over = Readable.from(['x']);
  over.destroy();
  expect(await fed(over)).toBe('');
});

it('reads a stream no faster than the pipe takes it', async () => {
  let made = 0;
  const source = new Readable({
    read() {
      made += 1;
      this.push(Buffer.alloc(16 * 1024));
    },
  });
  takeStdin(source);
  const pipe = new Writable({ highWaterMark: 16 * 1024, write: () => undefined });
  const feed = feedStdin(pipe, source);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(made).toBeLessThan(20);
  feed.stop();
  expect(source.destroyed).toBe(true);
  expect(pipe.destroyed).toBe(true);
});

it('lets a stream fail after the run without anybody else hearing of it', () => {
  const source = new Readable({ read: () => undefined });
  takeStdin(source);
  releaseStdin(source);
  expect(() => source.emit('error', new Error('late'))).not.toThrow();
});

describe('a stream of somebody else\'s make', () => {
  const throwing = () => {
    throw new Error('no');
  };
  const streamOf = (methods: object) => ({
    pipe() {},
    on() {},
    destroy() {},
    async *[Symbol.asyncIterator]() {
      yield 'hello';
    },
    ...methods,
  }) as unknown as Readable;

  it.each([
    [{}, 'hello'],
    [{ destroy: throwing }, 'hello'],
    [{ on: throwing }, 'hello'],
    [{ destroy: () => Promise.reject(new Error('later')) }, 'hello'],
    [{ [Symbol.asyncIterator]: throwing }, ''],
    [{ [Symbol.asyncIterator]: () => ({ next: throwing }) }, ''],
    [{ [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: 1 }), return: throwing }) }, ''],
  ])('may fail in its methods: %o', async (methods, read) => {
    const source = streamOf(methods);
    takeStdin(source);
    const pipe = new PassThrough();
    const feed = feedStdin(pipe, source);
    expect(await text(pipe)).toBe(read);
    expect(() => feed.stop()).not.toThrow();
    expect(() => releaseStdin(source)).not.toThrow();
    // An unhandled rejection would fail this test file.
    await new Promise(setImmediate);
  });

  it.each([{ on: throwing }, { destroy: throwing }, { destroy: throwing, [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }) }])(
    'and the run ends all the same: %o',
    async (methods) => {
      const result = await runSandboxed({ command: 'true', args: [], timeoutMs: 30_000, stdin: streamOf(methods) });
      expect(result).toMatchObject({ outcome: 'exit', exitCode: 0 });
    },
  );
});
