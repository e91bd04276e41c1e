import { describe, expect, it } from 'vitest';

import { patience } from '../support/lane.js';
import { executorFor, outputOf, run, runtimes } from './support/executors.js';

describe.each(runtimes)('functions of the host, called from %s', (runtime) => {
  const executor = executorFor(runtime);

  it('get their arguments and are answered', async () => {
    const source = 'export default async () => [await host.add({ a: 1, b: 2 }), await host.nothing(), await host.echo(), await host.echo(null)]';
    const bindings = { add: ({ a, b }: { a: number; b: number }) => Promise.resolve(a + b), nothing: () => undefined, echo: (args: unknown) => ({ args: args === undefined ? 'none' : args }) };
    expect(await outputOf(run(executor, source, { bindings }))).toEqual([3, null, { args: 'none' }, { args: null }]);
  });

  it('run at the same time, each answered as it settles', async () => {
    let open = 0;
    let most = 0;
    const order: number[] = [];
    const bindings = {
      async wait(milliseconds: unknown) {
        most = Math.max(most, ++open);
        await new Promise((resolve) => setTimeout(resolve, Number(milliseconds)));
        open--;
        return milliseconds;
      },
    };
    const source = `export default async () => {
      const order = [];
      await Promise.all([300, 150, 20].map(async (ms) => order.push(await host.wait(ms))));
      return order;
    }`;
    order.push(...((await outputOf(run(executor, source, { bindings }))) as number[]));
    expect(order).toEqual([20, 150, 300]);
    expect(most).toBe(3);
  });

  it('fail in the guest with the message only', async () => {
    const source = `export default async () => {
      const failures = [];
      for (const name of ['throws', 'rejects', 'text']) await host[name]().catch((error) => failures.push([error instanceof Error, error.message, Object.keys(error)]));
      return failures;
    }`;
    const bindings = {
      throws: () => {
        throw Object.assign(new TypeError('not today'), { secret: 'inner' });
      },
      rejects: () => Promise.reject(new Error('nor tomorrow')),
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
      text: () => Promise.reject('plain'),
    };
    expect(await outputOf(run(executor, source, { bindings }))).toEqual([
      [true, 'not today', []],
      [true, 'nor tomorrow', []],
      [true, 'plain', []],
    ]);
  });

  it('end the run when the guest does not catch their failure', async () => {
    const bindings = { fail: () => Promise.reject(new Error('the host says no')) };
    expect(await run(executor, 'export default () => host.fail()', { bindings })).toMatchObject({ ok: false, code: 'guest-error', error: 'the host says no' });
  });

  it('are those that were given, by their own names alone', async () => {
    const source = `export default async () => [Object.keys(host), typeof host.toString, typeof host.constructor, Object.isFrozen(host)]`;
    expect(await outputOf(run(executor, source, { bindings: { a: () => 1 } }))).toEqual([['a'], 'undefined', 'undefined', true]);
    expect(await outputOf(run(executor, 'export default () => typeof host'))).toBe('undefined');
  });

  it('may give back what is no JSON, or too much: the call fails, the run goes on', async () => {
    const source = `export default async () => {
      const failures = [];
      for (const name of ['big', 'cyclic', 'huge']) await host[name]().catch((error) => failures.push(error.code));
      return failures;
    }`;
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    const bindings = { big: () => 10n, cyclic: () => cyclic, huge: () => 'x'.repeat(3 * 1024 * 1024) };
    expect(await outputOf(run(executor, source, { bindings }))).toEqual(['bad_result', 'bad_result', 'too_large']);
  });

  it('that is too long itself is rejected, and the others go on', async () => {
    const source = `export default async () => {
      const refused = await host.size('ä'.repeat(1024 * 1024)).catch(({ code, message }) => [code, message]);
      return [refused, await host.size('ä'.repeat(1024 * 1024 - 100)), await host.size('x')];
    }`;
    const output = await outputOf(run(executor, source, { bindings: { size: (text) => (text as string).length } }));
    expect(output).toEqual([['too_large', 'a call of size has more than 2097152 bytes'], 1024 * 1024 - 100, 1]);
  });

  it('answer thousands of calls', async () => {
    let calls = 0;
    const source = `export default async () => {
      let sum = 0;
      for (let batch = 0; batch < 10; batch++) {
        for (const value of await Promise.all(Array.from({ length: 300 }, (_, n) => host.next(n)))) sum += value;
      }
      return sum;
    }`;
    const bindings = { next: (n: unknown) => (calls++, Number(n)) };
    expect(await outputOf(run(executor, source, { bindings, capabilities: { timeoutMs: patience(20_000) } }))).toBe(10 * 44_850);
    expect(calls).toBe(3000);
  });

  it('are not called any more once the run has ended', async () => {
    let calls = 0;
    const bindings = { tick: () => ++calls };
    const source = 'export default async () => { host.tick(); await host.tick(); setInterval(() => host.tick().catch(() => {}), 1); return 1 }';
    expect(await outputOf(run(executor, source, { bindings }))).toBe(1);
    const atTheEnd = calls;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(calls).toBe(atTheEnd);
  });
});
