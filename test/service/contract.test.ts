import { beforeAll, describe, expect, it } from 'vitest';

import { leftovers, newLeftovers } from '../support/leftovers.js';
import { listening, post } from './support/service.js';

describe.each(['deno', 'node'] as const)('functions over HTTP, in %s', (runtime) => {
  it('gives input and secrets to the function, and its output and console back', async () => {
    const { url } = await listening({ runtime });
    const source = `
      interface Input { words: string[] }
      export default async function ({ words }: Input) {
        console.log('got', words.length);
        console.error({ a: 1 });
        return { upper: words.map((word: string) => word.toUpperCase()), secret: globalThis.__secrets.KEY.length, nothing: undefined };
      }`;
    const answer = await post(url, { source, input: { words: ['a', 'é', '\u{1f600}'] }, secrets: { KEY: 'sesame' } });
    expect(answer).toMatchObject({
      ok: true,
      output: { upper: ['A', 'É', '\u{1f600}'], secret: 6 },
      logs: ['log: got 3', 'error: { a: 1 }'],
      connections: [],
    });
    expect(answer).not.toHaveProperty('error');
    expect(answer.ms).toBeGreaterThan(0);
    expect(answer.usage.wallMs).toBeGreaterThan(0);
    expect(Object.values(answer.enforcement).map(({ status }) => status)).not.toContain('unavailable');
    expect(answer.enforcement.network.status).toBe('enforced');
  });

  it('has no output for a function that returns nothing', async () => {
    const { url } = await listening({ runtime });
    const answer = await post(url, { source: 'export default () => {}' });
    expect(answer.ok).toBe(true);
    expect(answer).not.toHaveProperty('output');
  });

  it.each<[string, string]>([
    ['an error', "export default () => { throw new RangeError('out of bounds') }"],
    ['a rejection', "export default async () => { throw new RangeError('out of bounds') }"],
    ['something else thrown', "export default () => { throw 'out of bounds' }"],
    ['an error while it loads', "throw new Error('out of bounds'); export default () => 1"],
    ['an error in a timer', "export default () => new Promise(() => setTimeout(() => { throw new Error('out of bounds') }))"],
  ])('%s is its own message', async (_, source) => {
    const { url } = await listening({ runtime });
    expect(await post(url, { source })).toMatchObject({ ok: false, code: 'guest-error', error: 'out of bounds', logs: [] });
  });

  it.each<[string, string, RegExp]>([
    ['no default export', 'export const a = 1', /export default/],
    ['a default export that is no function', 'export default 7', /export default/],
    ['a syntax error', 'export default (', /./],
    ['BigInt', 'export default () => 1n', /JSON/],
    ['a cycle', 'export default () => { const a = {}; a.a = a; return a }', /JSON/],
    ['a function', 'export default () => () => 1', /JSON/],
  ])('%s is an error that says so, without a path of the host', async (_, source, message) => {
    const { url } = await listening({ runtime });
    const answer = await post(url, { source });
    expect(answer).toMatchObject({ ok: false, error: expect.stringMatching(message) });
    expect(answer.error).not.toMatch(/\/(root|work|home|usr|ringfence)\//);
  });

  it('the deadline ends it, with what it had logged', async () => {
    const { url } = await listening({ runtime });
    const source = "export default () => { console.log('here'); for (;;); }";
    const answer = await post(url, { source, capabilities: { timeoutMs: 1500 } });
    expect(answer).toMatchObject({ ok: false, code: 'timeout', timedOut: true, error: 'wall-time exceeded (1500ms)', logs: ['log: here'] });
    expect(answer.ms).toBeGreaterThanOrEqual(1500);
    expect(answer.ms).toBeLessThan(15_000);
  });

  it('memory is bounded', async () => {
    const { url } = await listening({ runtime });
    const source = 'export default () => { const kept = []; for (;;) kept.push(new Uint8Array(1 << 20).fill(1)); }';
    const answer = await post(url, { source, capabilities: { memoryMb: 32, timeoutMs: 20_000 } });
    expect(answer).toMatchObject({ ok: false, code: 'out-of-memory', error: expect.stringContaining('32') });
  });

  it('what it prints is output, never an answer', async () => {
    const { url } = await listening({ runtime });
    const source = `import fs from 'node:fs';
      export default () => {
        fs.writeSync(1, '{"t":"result","output":"forged"}\\n{"ok":true,"output":"forged"}\\n');
        return 'real';
      }`;
    expect(await post(url, { source })).toMatchObject({ ok: true, output: 'real' });
  });

  it('a __proto__ in the input is data on the way in, and gone or data on the way out', async () => {
    const { url } = await listening({ runtime });
    const source = 'export default (input) => ({ polluted: {}.polluted ?? null, keys: Object.keys(input), back: input })';
    const raw = `{"capabilities":{},"source":${JSON.stringify(source)},"input":{"__proto__":{"polluted":true},"a":1}}`;
    const response = await fetch(`${url}/run`, { method: 'POST', body: raw });
    const answer = (await response.json()) as { ok: boolean; output: { polluted: unknown } };
    expect(answer).toMatchObject({ ok: true, output: { polluted: null } });
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it('deep input, or much of it, is answered', async () => {
    const { url } = await listening({ runtime });
    const source = 'export default (input) => JSON.stringify(input).length';
    const send = (depth: number) =>
      fetch(`${url}/run`, { method: 'POST', body: `{"capabilities":{},"source":${JSON.stringify(source)},"input":${'['.repeat(depth)}${']'.repeat(depth)}}` });
    expect(await (await send(400)).json()).toMatchObject({ ok: true, output: 800 });
    const refused = await send(100_000);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toEqual({ ok: false, error: 'input must be JSON, and not nest thousands of levels deep', logs: [] });
    expect(await post(url, { source, input: 'x'.repeat(1_900_000), capabilities: { timeoutMs: 20_000 } })).toMatchObject({ ok: true, output: 1_900_002 });
  });
});

describe('the network of a function', () => {
  it.each(['deno', 'node'] as const)('%s: with net [] a fetch is an error, and nothing leaves', async (runtime) => {
    const { url } = await listening({ runtime });
    const source = "export default () => fetch('http://127.0.0.1:' + 8787).then(() => 'reached')";
    expect(await post(url, { source, capabilities: { net: [], timeoutMs: 20_000 } })).toMatchObject({ ok: false, code: 'guest-error', connections: [] });
  });

  it('import on Node is refused, and says why', async () => {
    const { url } = await listening({ runtime: 'node' });
    const answer = await post(url, { source: 'export default () => 1', capabilities: { import: ['esm.sh'] } });
    expect(answer).toMatchObject({ ok: false, error: expect.stringMatching(/Node/) });
  });

  it('with import [] Deno imports nothing remote', async () => {
    const { url } = await listening({ runtime: 'deno' });
    for (const specifier of ['https://deno.land/std/version.ts', 'jsr:@std/assert', 'npm:chalk', 'https://esm.sh/chalk']) {
      const source = `export default async () => { await import(${JSON.stringify(specifier)}); return 'imported' }`;
      const answer = await post(url, { source, capabilities: { import: [], timeoutMs: 20_000 } });
      expect(answer, specifier).toMatchObject({ ok: false, code: 'guest-error', connections: [] });
    }
  });
});

describe('after all of it', () => {
  let before: ReturnType<typeof leftovers>;
  beforeAll(() => (before = leftovers()));

  it('nothing is left', async () => {
    const { url, stop } = await listening({ runtime: 'node' });
    await Promise.all([post(url, { source: 'export default () => process.exit(3)' }), post(url, { source: 'export default () => 1' })]);
    await stop();
    const { processes, cgroups, temporary, mounts } = newLeftovers(before, leftovers());
    expect({ processes, cgroups, temporary, mounts }).toEqual({});
  });
});
