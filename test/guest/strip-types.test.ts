import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';

import { TypeStripper } from '../../src/guest/strip-types.js';
import { patience } from '../support/lane.js';
import { executorFor, run } from './support/executors.js';

/** Takes the compiler the better part of a second, and breaks it. */
const LONG = `export default () => 1;\n${'1+'.repeat(1e6)}1`;
/** Short, and takes it more than a second. */
const SLOW = `${'a<'.repeat(200)}b${'>(c)'.repeat(200)};`.repeat(50);

function stripper() {
  const types = new TypeStripper();
  onTestFinished(() => types.close());
  return { types, strip: (source: string) => types.strip(source).done };
}

describe('taking types out', () => {
  it('leaves JavaScript, and what is more than types works too', async () => {
    const { strip } = stripper();
    const javaScript = 'export default async (input) => { for await (const x of input) yield_(x) } // `comment`';
    expect(await strip(javaScript)).toEqual({ code: javaScript });
    const stripped = await strip('type A = { a: number }; export default (input: A): number => input.a as number satisfies number;');
    expect(stripped).toEqual({ code: expect.stringMatching(/^;? +export default \(input +\) +=> input\.a +;$/) as string });
    const more = await strip('enum Color { Red = "r" } class P { constructor(private x: number) {} } export default () => Color.Red;');
    expect('code' in more && more.code).toMatch(/Red/);
    expect(await strip('export default ( =>')).toEqual({ problem: expect.any(String) as string });
  });

  it('survives a source that breaks the compiler, and so do those that wait behind it', async () => {
    const { strip } = stripper();
    const deep = `export default ${'('.repeat(100_000)}1${')'.repeat(100_000)}`;
    const [before, broken, after] = await Promise.all([strip('1'), strip(deep), strip('let a: number = 2')]);
    expect(before).toEqual({ code: '1' });
    expect(broken).toEqual({ problem: expect.stringMatching(/nest/) as string });
    expect(after).toEqual({ code: 'let a         = 2' });
    expect(await strip('3')).toEqual({ code: '3' });
  });

  it('lets no short source wait for slow ones', async () => {
    const { strip } = stripper();
    await strip('1');
    const order: string[] = [];
    const note = (name: string, source: string) => strip(source).then((answer) => (order.push(name), answer));
    const slow = [LONG, SLOW, LONG, SLOW].map((source) => note('slow', source));
    const short = Array.from({ length: 20 }, (_, index) => note('short', `let a: number = ${index}`));
    await Promise.all(short);
    expect(order).toEqual(Array(20).fill('short'));
    const answers = await Promise.all(slow);
    expect(answers.map((answer) => 'problem' in answer)).toEqual([true, true, true, true]);
    expect(answers[1]).toEqual({ problem: expect.stringMatching(/cannot be parsed in time/) as string });
  });

  it('takes a source that was slow behind those that were not', async () => {
    const { strip } = stripper();
    await Promise.all([strip('1'), strip(`1;${' '.repeat(100_000)}`)]);
    const order: string[] = [];
    const note = (name: string, source: string) => strip(source).then((answer) => (order.push(name), answer));
    const busy = [note('long', LONG), note('long', LONG)];
    const slow = note('slow', SLOW);
    await sleep(patience(300));
    const honest = Array.from({ length: 3 }, () => note('honest', 'let x: number = 1;\n'.repeat(20_000)));
    for (const answer of await Promise.all(honest)) expect(answer).toHaveProperty('code');
    await Promise.all([...busy, slow]);
    expect(order).toEqual(['long', 'honest', 'honest', 'honest', 'long', 'slow']);
  });

  it('does nothing more for a run that has ended', async () => {
    const { types, strip } = stripper();
    const tasks = Array.from({ length: 40 }, () => types.strip(LONG));
    for (const task of tasks) task.cancel();
    const began = performance.now();
    expect(await strip(`let a: number = 1;${' '.repeat(100_000)}`)).toHaveProperty('code');
    // Each would have taken its half second.
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it('refuses a source that no sandbox could be sent', async () => {
    const { strip } = stripper();
    expect(await strip(' '.repeat(2 * 1024 * 1024 + 1))).toEqual({ problem: 'the source has more than 2097152 characters' });
  });
});

describe('honest functions beside sources that are slow to read', () => {
  const node = executorFor('node');

  it.each([
    ['long', LONG, 1],
    ['long, with all the time there is', LONG, 30_000],
    ['short', SLOW, 30_000],
  ])('are answered in time: %s', async (_, source, timeoutMs) => {
    await run(node, 'export default () => 1');
    const stop = new AbortController();
    const evil = Array.from({ length: 12 }, () => node.run({ source, capabilities: { timeoutMs }, signal: stop.signal }));
    for (let round = 0; round < 3; round++) {
      expect(await run(node, 'export default (n: number) => n + 1', { input: 1, capabilities: { timeoutMs: patience(3000) } })).toMatchObject({ ok: true, output: 2 });
    }
    stop.abort();
    await Promise.all(evil);
  });
});
