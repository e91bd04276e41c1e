/** Threads, and memory that they could share: gone before guest code runs. What a runtime's own modules leave of them stands in README. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';

import { executorFor, outputOf, run, runtimes } from './support/executors.js';

const tried = (expression: string): string => `(() => { try { return ${expression} } catch ({ message }) { return message } })()`;

describe.each(runtimes)('a function on %s', (runtime) => {
  const executor = executorFor(runtime);

  it('has neither workers nor shared memory by any name', async () => {
    const source = `export default () => [typeof Worker, typeof SharedWorker, typeof SharedArrayBuffer, typeof Atomics, globalThis.Atomics, Function('return typeof Atomics')(), (0, eval)('typeof SharedArrayBuffer')].map(String)`;
    expect(new Set((await outputOf(run(executor, source))) as string[])).toEqual(new Set(['undefined']));
  });

  it('has no shared memory by WebAssembly, made or exported', async () => {
    // (module (memory (export "m") 1 1 shared))
    const module = [0, 97, 115, 109, 1, 0, 0, 0, 5, 4, 1, 3, 1, 1, 7, 5, 1, 1, 109, 2, 0];
    const source = `export default () => {
      const made = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
      const exported = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array([${module}]))).exports.m;
      const own = new WebAssembly.Memory({ initial: 1, maximum: 2 });
      own.grow(1);
      return [${tried('made.buffer')}, ${tried('exported.buffer')}, ${tried('structuredClone(made).buffer')}, ${tried('made.toFixedLengthBuffer?.() ?? made.buffer')}, ${tried('made.toResizableBuffer?.() ?? made.buffer')}, own.buffer instanceof ArrayBuffer, own.buffer.byteLength];
    }`;
    const refused = 'shared memory is not available';
    const [made, exported, cloned, ...rest] = (await outputOf(run(executor, source))) as unknown[];
    expect([made, exported]).toEqual([refused, refused]);
    expect(cloned).toMatch(/not available|cloned/);
    expect(rest).toEqual([refused, refused, true, 131_072]);
  });
});

it('on Node, workers of node:worker_threads and hooks for modules, which are such, cannot be started', async () => {
  const source = `import threads, { Worker } from 'node:worker_threads';
    import { createRequire, register } from 'node:module';
    export default async () => {
      globalThis.SharedArrayBuffer = ArrayBuffer;
      globalThis.Atomics = { load() {}, add() {}, store() {}, notify() {}, wait() {} };
      try { Object.setPrototypeOf(Worker, (await import('node:events')).EventEmitter) } catch {}
      const classes = [Worker, threads.Worker, createRequire('/')('worker_threads').Worker, process.getBuiltinModule('worker_threads').Worker, class extends Worker {}];
      const made = classes.map((Class) => ${tried("new Class('1', { eval: true }) && 'made'")});
      return [...made, ${tried("Reflect.construct(Worker, ['1', { eval: true }], Object) && 'made'")}, ${tried("register('data:text/javascript,export const load = undefined') ?? 'made'")}];
    }`;
  expect(new Set((await outputOf(run(executorFor('node'), source))) as string[])).toEqual(new Set(['workers are not available']));
});

it('on Deno, no realm has SharedArrayBuffer by its name, neither a context nor a worker of Node', async () => {
  const source = `import { Worker } from 'node:worker_threads';
    import vm from 'node:vm';
    export default async () => {
      const ofWorker = await new Promise((resolve) => {
        const worker = new Worker('require("worker_threads").parentPort.postMessage(typeof SharedArrayBuffer)', { eval: true });
        worker.on('message', resolve).on('error', ({ message }) => resolve(message));
      });
      return [vm.runInNewContext('typeof SharedArrayBuffer'), ofWorker, typeof SharedArrayBuffer, typeof Atomics];
    }`;
  expect(await outputOf(run(executorFor('deno'), source))).toEqual(['undefined', 'undefined', 'undefined', 'undefined']);
});

/** By names that nobody finds in the source of the function. */
const hidden: Record<string, string> = {
  setTimeout: `new Promise((resolve) => globalThis['set' + 'Timeout'](resolve, 1, 'done'))`,
  setImmediate: `new Promise((resolve) => globalThis['set' + 'Immediate'](resolve, 'done'))`,
  clearInterval: `(globalThis['clear' + 'Interval'](1), 'done')`,
  Buffer: `globalThis['Buf' + 'fer'].from('done').toString()`,
  process: `typeof globalThis['pro' + 'cess'].version === 'string' && 'done'`,
  'a module of Node': `(0, eval)('imp' + 'ort("node:' + 'util")').then(({ format }) => format('%s', 'done'))`,
  'a module with shared memory in mind': `(0, eval)('imp' + 'ort("node:' + 'worker_threads")').then(({ isMainThread }) => isMainThread && 'done')`,
};

describe('Node\'s part of Deno, which looks for Atomics when it is loaded, works by whatever name', () => {
  const cold = executorFor('deno');
  const warm = executorFor('deno', { warm: 1 });
  /** Seen before, between and after; `see` is called by setters in the midst of loading, too. */
  const watched = (body: string): string => `export default async () => {
    const seen = [];
    const see = () => { seen[seen.length] = typeof Atomics + typeof SharedArrayBuffer };
    const { defineProperty } = Object;
    for (const name of ['next', 'x', 'length', 'name']) defineProperty(Object.prototype, name, { configurable: true, get() { see(); return undefined }, set(value) { see(); defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true }) } });
    see();
    const done = await (${body});
    see();
    for (const name of ['next', 'x', 'length', 'name']) delete Object.prototype[name];
    return [done, ...new Set(seen)];
  }`;

  it.each(Object.entries(hidden))('%s', async (_, expression) => {
    expect(await outputOf(run(cold, watched(expression)))).toEqual(['done', 'undefinedundefined']);
    expect(await outputOf(run(cold, 'export default ({ code }) => eval(code)', { input: { code: expression } }))).toBe('done');
    for (const primer of ['export default () => 1', 'export default () => setTimeout(() => {}, 0) && 1']) {
      expect(await outputOf(run(warm, primer))).toBe(1);
      await sleep(300);
      expect(await outputOf(run(warm, watched(expression)))).toEqual(['done', 'undefinedundefined']);
    }
  });

  it('even where stacks are cut short or shown otherwise', async () => {
    for (const change of ['Error.stackTraceLimit = 0', 'Error.prepareStackTrace = (error, frames) => `${error}${frames.join()}`', 'Error.prepareStackTrace = (_, frames) => frames']) {
      const source = `export default async () => { ${change}; return (${hidden['setTimeout']}) }`;
      expect(await outputOf(run(cold, source)), change).toBe('done');
    }
  });
});
