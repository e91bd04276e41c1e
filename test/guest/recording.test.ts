/** The key of the channel is a secret that the harness holds in the guest's own realm, in Deno: no built-in that the guest can replace may meet it. */
import { describe, expect, it } from 'vitest';

import { startBroker } from './support/broker.js';
import { executorFor, outputOf, run } from './support/executors.js';
import { recorderSource } from './support/recorder.js';

interface Recorded {
  recorded: number;
  strangers: number;
  found: Record<string, number>;
  wheres: string[];
}

describe('on Deno', () => {
  const executor = executorFor('deno');

  it('a function that replaces every built-in sees no bytes of the channel', async () => {
    const bindings = { echo: (value: unknown) => value, fail: () => Promise.reject(new Error('no')) };
    const { recorded, strangers, found, wheres } = (await outputOf(run(executor, recorderSource, { bindings }))) as Recorded;
    expect({ strangers, found }).toEqual({ strangers: 0, found: {} });
    // It does see what passes.
    expect(recorded).toBeGreaterThan(50);
    expect(wheres).toEqual(expect.arrayContaining(['Promise.constructor', 'get Object toJSON', 'get Object then']));
  });

  it('a function that records would find a frame that met a built-in', async () => {
    const leaks: Record<string, string> = {
      'set Array index': '[][0] = frame',
      'set index': '({})[1] = [frame]',
      species: 'apply(subarray, frame, [1])',
      'Uint8Array length': 'frame.length',
      'Set.add': 'new OwnSet().add({ deep: [frame.buffer] })',
    };
    for (const [where, leak] of Object.entries(leaks)) {
      const source = recorderSource
        .replace('busy = false;\n\n', `const { subarray } = typed, frame = new OwnBytes(32).fill(7);\n  busy = false;\n  ${leak};\n`);
      expect(((await outputOf(run(executor, source, { bindings: { echo: (value) => value, fail: () => 1 } }))) as Recorded).found, leak).toHaveProperty(where);
    }
  });

  it('a setter for the elements of arrays gets nothing to forge with', async () => {
    const broker = await startBroker();
    const source = `export default async () => {
      let queue, first;
      const { defineProperty } = Object;
      for (const owner of [Array.prototype, Object.prototype]) for (let index = 0; index < 3; index++) defineProperty(owner, index, { configurable: true, set(value) {
        if (value instanceof Uint8Array && queue === undefined) { queue = this; first = value.slice(); }
        defineProperty(this, index, { value, writable: true, configurable: true, enumerable: true });
      } });
      console.log('bait');
      for (const owner of [Array.prototype, Object.prototype]) for (let index = 0; index < 3; index++) delete owner[index];
      if (queue === undefined) return 'genuine';
      const forge = (message) => { const text = new TextEncoder().encode(JSON.stringify(message)); const frame = new Uint8Array(20 + text.length); frame.set(first.subarray(0, 16)); new DataView(frame.buffer).setUint32(16, text.length, true); frame.set(text, 20); queue[queue.length] = frame; };
      forge({ t: 'log', text: 'forged' });
      forge({ t: 'call', id: 999, method: 'files.list', args: { forged: true } });
      forge({ t: 'result', output: 'forged' });
      console.log('kick');
      await new Promise(() => {});
    }`;
    expect(await run(executor, source, { bindings: { url: broker.url, token: 'broker-token' } })).toMatchObject({ output: 'genuine', logs: ['log: bait'] });
    expect(broker.calls).toEqual([]);
  });

  it('a function that answers for promises changes at worst its own run', async () => {
    for (const count of ['0', '-1', '16', '65536', '65537', 'NaN', '"1"', '{}', 'null', '1e9']) {
      const source = `export default async () => {
        const { then } = Promise.prototype;
        class Other {}
        Object.defineProperty(Promise.prototype, 'constructor', { configurable: true, get() { return Other } });
        Promise.prototype.then = function (resolve, reject) { return Reflect.apply(then, this, [(value) => resolve(typeof value === 'number' ? ${count} : value), reject]) };
        for (let n = 0; n < 3; n++) console.log(n);
        host.echo(1);
        host.echo('x'.repeat(100000));
        for (let turn = 0; turn < 100; turn++) await null;
        return 'genuine';
      }`;
      const { ok, output, code } = await run(executor, source, { bindings: { echo: (value) => value }, capabilities: { timeoutMs: 1500 } });
      expect(ok ? output : code, count).toMatch(/^(genuine|guest-exit|guest-error|timeout|protocol)$/);
    }
    expect(await outputOf(run(executor, 'export default () => 1'))).toBe(1);
  });
});
