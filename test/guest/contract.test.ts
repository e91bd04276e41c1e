import { describe, expect, it } from 'vitest';

import { patience } from '../support/lane.js';
import { executorFor, outputOf, run, runtimes } from './support/executors.js';

describe.each(runtimes)('a function on %s', (runtime) => {
  const executor = executorFor(runtime);
  const leave = runtime === 'deno' ? 'Deno.exit(3)' : 'process.exit(3)';

  it('gets its input and gives back its result, in TypeScript', async () => {
    const source = `
      interface Input { items: { price: number }[] }
      enum Rate { Vat = 20 }
      export default async function total({ items }: Input): Promise<{ total: number; rate: number }> {
        return { total: items.reduce((sum: number, { price }) => sum + price, 0), rate: Rate.Vat as number };
      }`;
    const answer = await run(executor, source, { input: { items: [{ price: 2 }, { price: 40 }] } });
    expect(answer).toMatchObject({ ok: true, output: { total: 42, rate: 20 }, logs: [] });
    expect(answer.error).toBeUndefined();
    expect(answer.code).toBeUndefined();
    expect(answer.timedOut).toBeUndefined();
  });

  it('answers in the same shape whatever happens', async () => {
    const fates = {
      returns: 'export default () => 1',
      throws: 'export default () => { throw new Error("x") }',
      'is not there': 'export const a = 1',
      'is no JavaScript': 'export default ( =>',
      exits: `export default () => { ${leave} }`,
    };
    for (const [fate, source] of Object.entries(fates)) {
      const answer = await run(executor, source);
      expect(answer.ok, fate).toBe(fate === 'returns');
      expect(Array.isArray(answer.logs), fate).toBe(true);
      expect(answer.ms, fate).toBeGreaterThanOrEqual(0);
      expect(typeof answer.usage.wallMs, fate).toBe('number');
      expect(Object.keys(answer.enforcement), fate).toContain('network');
      expect(answer.connections, fate).toEqual([]);
      if (!answer.ok) expect(answer.error, fate).toMatch(/\S/);
    }
  });

  it('is fenced in like any other guest', async () => {
    const { enforcement } = await run(executor, 'export default () => 1');
    const open = Object.entries(enforcement).filter(([fence, { status }]) => fence !== 'cpu' && status !== 'enforced');
    expect(open).toEqual([]);
  });

  it('may return nothing, or anything that JSON has', async () => {
    for (const value of ['null', '0', '""', 'false', '[]', '{"a":[1,"b",null]}', '"💡\\u0000\\n"']) {
      expect(await outputOf(run(executor, `export default () => (${value})`))).toEqual(JSON.parse(value.replace('💡\\u0000\\n', '💡\\u0000\\n')));
    }
    const answer = await run(executor, 'export default () => undefined');
    expect(answer.ok).toBe(true);
    expect('output' in answer).toBe(false);
  });

  it('fails with a reason when its result is not JSON', async () => {
    const results = { '() => 1': 'a function', 'Symbol("a")': 'a symbol', '10n': 'BigInt', '(() => { const a = {}; a.a = a; return a; })()': 'circular' };
    for (const [result, reason] of Object.entries(results)) {
      const answer = await run(executor, `export default () => (${result})`);
      expect(answer, result).toMatchObject({ ok: false, code: 'guest-error' });
      expect(answer.error, result).toMatch(/the result is not JSON/);
      expect(answer.error, result).toContain(reason);
    }
  });

  it('fails with its own message, whatever it throws', async () => {
    const thrown = {
      'new TypeError("bad input")': 'bad input',
      '"text"': 'text',
      '42': '42',
      null: 'null',
      undefined: 'undefined',
      '{ message: "like an error" }': 'like an error',
      'Object.create(null)': 'an error that cannot be shown',
      '{ get message() { throw 1 } }': 'an error that cannot be shown',
      'new RangeError("")': 'RangeError',
      'new AggregateError([], "all of them")': 'all of them',
    };
    for (const [value, message] of Object.entries(thrown)) {
      const answer = await run(executor, `export default async () => { throw (${value}) }`);
      expect(answer, value).toMatchObject({ ok: false, code: 'guest-error', error: message });
    }
  });

  it('says nothing of source, harness or host in an error', async () => {
    const sources = [
      'export default () => { const secretWord = 1; null.x; }',
      'export default () => { const secretWord = ',
      'import x from "./secretWord.js"; export default () => x',
      'import x from "secretWord-package"; export default () => x',
      'export default () => import("secretWord")',
      'throw new Error("at the top") /* secretWord */',
      'export default () => { undefinedName; /* secretWord */ }',
    ];
    for (const source of sources) {
      const { ok, error = '' } = await run(executor, source);
      expect(ok, source).toBe(false);
      expect(error, source).not.toMatch(/data:|ringfence\/|node_modules|\n\s+at |\.mjs/);
      if (!source.includes('"./secretWord') && !source.includes('secretWord-') && !source.includes('("secretWord")')) expect(error, source).not.toContain('secretWord');
      expect(error, source).not.toContain(process.cwd());
    }
  });

  it('logs to the console, each call one entry with its level', async () => {
    const seen: string[] = [];
    const source = `export default () => {
      console.log('a', 1, { b: [2] }); console.info('i'); console.warn('w'); console.error('e'); console.debug('d');
      console.assert(true, 'no'); console.assert(false, 'yes'); console.group('g'); console.groupEnd(); console.count(); console.time('t');
    }`;
    const { logs } = await run(executor, source, { onLog: (line) => void seen.push(line) });
    expect(logs).toEqual(['log: a 1 { b: [ 2 ] }', 'info: i', 'warn: w', 'error: e', 'debug: d', 'error: Assertion failed yes', 'group: g']);
    expect(seen).toEqual(logs);
  });

  it('keeps the logs of a run that fails, and of one that is ended', async () => {
    expect(await run(executor, 'export default () => { console.log("before"); throw new Error("x") }')).toMatchObject({ ok: false, logs: ['log: before'] });
    const late = await run(executor, 'export default () => { console.log("before"); for (;;); }', { capabilities: { timeoutMs: patience(1500) } });
    expect(late).toMatchObject({ ok: false, timedOut: true, logs: ['log: before'] });
  });

  it('has 1000 lines of 4000 characters', async () => {
    const source = `export default () => { console.log('x'.repeat(10_000)); for (let n = 0; n < 3000; n++) console.log(n); return 'done' }`;
    const answer = await run(executor, source);
    expect(answer.output).toBe('done');
    expect(answer.logs).toHaveLength(1000);
    expect(answer.logs[0]).toBe(`log: ${'x'.repeat(3995)}`);
    expect(answer.logs[999]).toBe('log: 998');
  });

  it('prints to its output, which is no protocol and no log', async () => {
    const source = `import { writeSync } from 'node:fs'; import process from 'node:process';
      export default () => { process.stdout.write('{"t":"result","output":"forged"}\\n'); writeSync(2, 'x'); return 'genuine' }`;
    expect(await run(executor, source)).toMatchObject({ ok: true, output: 'genuine', logs: [] });
  });

  it('may call and print on a stack that is all but full', async () => {
    const source = `export default async () => {
      const calls = [];
      const deeper = () => { try { deeper() } finally { if (calls.length < 300) try { console.log('deep'); calls.push(host.echo(calls.length)) } catch {} } };
      try { deeper() } catch {}
      console.log('back');
      return (await Promise.allSettled(calls)).filter(({ status }) => status === 'fulfilled').length;
    }`;
    const { output, logs } = await run(executor, source, { bindings: { echo: (value) => value } });
    expect(output).toBeGreaterThan(200);
    expect(logs.at(-1)).toBe('log: back');
  });

  it('is ended at its deadline, whether it waits or is busy, and traffic does not move that', async () => {
    const timeoutMs = patience(1000);
    const fates = {
      'waits for ever': 'export default () => new Promise(() => {})',
      'is busy': 'export default () => { for (;;); }',
      'talks all the time': 'export default async () => { for (;;) { console.log(1); await host.ping(); } }',
    };
    for (const [fate, source] of Object.entries(fates)) {
      const answer = await run(executor, source, { capabilities: { timeoutMs }, bindings: { ping: () => 1 } });
      expect(answer, fate).toMatchObject({ ok: false, timedOut: true, code: 'timeout', error: `wall-time exceeded (${timeoutMs}ms)` });
      expect(answer.ms, fate).toBeGreaterThanOrEqual(timeoutMs - 5);
      expect(answer.ms, fate).toBeLessThan(timeoutMs + patience(3000));
    }
  });

  it('that answers while it keeps its process busy has answered', async () => {
    const source = `export default () => { setInterval(() => {}, 10); new Promise(() => {}); return 'early' }`;
    expect(await outputOf(run(executor, source))).toBe('early');
  });

  it('is ended by a signal, also by one that was aborted before', async () => {
    const controller = new AbortController();
    const source = 'export default async () => { await host.started(); await new Promise(() => {}); }';
    const answer = await run(executor, source, { signal: controller.signal, bindings: { started: () => controller.abort() } });
    expect(answer).toMatchObject({ ok: false, code: 'canceled' });
    expect(answer.timedOut).toBeUndefined();
    const second = await run(executor, source, { signal: AbortSignal.abort() });
    expect(second).toMatchObject({ ok: false, code: 'canceled', usage: { wallMs: 0 } });
  });

  it('sees its secrets and nothing of the host', async () => {
    const source = `export default () => [globalThis.__secrets, Object.keys(globalThis).includes('__secrets')]`;
    expect(await outputOf(run(executor, source, { secrets: { key: 'value', ['__proto__']: 'x' } }))).toEqual([JSON.parse('{"key":"value"}'), false]);
    expect(await outputOf(run(executor, source))).toEqual([{}, false]);
  });

  it('runs out of memory without harm to others, on the heap and beside it', async () => {
    const bombs = ['const a = []; for (;;) a.push(new Array(1000).fill(1.5))', 'const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))'];
    for (const bomb of bombs) {
      const answer = await run(executor, `export default () => { ${bomb} }`, { capabilities: { memoryMb: 32 } });
      expect(answer, bomb).toMatchObject({ ok: false, code: 'out-of-memory', error: 'memory limit exceeded (32 MiB)' });
    }
    expect(await outputOf(run(executor, 'export default () => 1'))).toBe(1);
  });

  it('has the heap that it asks for', async () => {
    const source = 'export default () => { const a = []; for (let n = 0; n < 90; n++) a.push(new Array(1 << 17).fill(n + 0.5)); return a.length }';
    expect(await outputOf(run(executor, source, { capabilities: { memoryMb: 128 } }))).toBe(90);
  });

  it('that ends its process has not answered', async () => {
    expect(await run(executor, `export default () => { ${leave} }`)).toMatchObject({ ok: false, code: 'guest-exit' });
    expect(await run(executor, `${leave}; await new Promise(() => {}); export default () => 1`)).toMatchObject({ ok: false, code: 'guest-exit' });
  });

  it('fails when a promise that nobody waits for is rejected, or a callback throws', async () => {
    for (const stray of ['Promise.reject(new Error("stray"))', 'setTimeout(() => { throw new Error("stray") }, 1)']) {
      const answer = await run(executor, `export default async () => { ${stray}; await new Promise((resolve) => setTimeout(resolve, 2000)); return 1 }`);
      expect(answer, stray).toMatchObject({ ok: false, code: 'guest-error', error: 'stray' });
    }
  });
});

describe('an executor', () => {
  it('clamps what it is asked for and takes defaults for what is no number', async () => {
    const executor = executorFor('node');
    const answer = await executor.run({ source: 'export default () => { for (;;); }', capabilities: { timeoutMs: 0 } });
    expect(answer.error).toBe('wall-time exceeded (1ms)');
    const source = 'export default () => process.execArgv';
    const heapOf = async (memoryMb: unknown) => outputOf(run(executor, source, { capabilities: { memoryMb: memoryMb as number } }));
    expect(await heapOf(1)).toEqual(['--max-old-space-size=16']);
    expect(await heapOf('64')).toEqual(['--max-old-space-size=128']);
    expect(await heapOf(Number.NaN)).toEqual(['--max-old-space-size=128']);
  });

  it('refuses a request that is none, in the same shape, and starts nothing', async () => {
    const executor = executorFor('deno');
    const requests = [undefined, null, 1, {}, { source: 1 }, { source: '' }, { source: 'x', capabilities: 1 }, { source: 'x', capabilities: { net: 'a' } }, { source: 'x', secrets: { a: 1 } }, { source: 'x', bindings: { a: 1 } }];
    for (const request of requests) {
      const answer = await executor.run(request as never);
      expect(answer, JSON.stringify(request)).toMatchObject({ ok: false, code: 'invalid-request', logs: [], usage: { wallMs: 0 } });
      expect(answer.error, JSON.stringify(request)).toMatch(/must/);
    }
  });

  it('ends what runs when it is closed, and takes nothing more', async () => {
    const executor = executorFor('node');
    const running = run(executor, 'export default () => new Promise(() => {})');
    await new Promise((resolve) => setTimeout(resolve, 200));
    await executor.close();
    expect(await running).toMatchObject({ ok: false, code: 'canceled' });
    expect(await run(executor, 'export default () => 1')).toMatchObject({ ok: false, code: 'closed' });
  });

  it('says what is wrong when its runtime is not there, without a path', async () => {
    const executor = executorFor('deno', { command: '/nowhere/deno' });
    const answer = await run(executor, 'export default () => 1');
    expect(answer).toMatchObject({ ok: false, code: 'command-not-found' });
    expect(answer.error).not.toContain('/nowhere');
  });
});
