/** Attacks on the channel by a function that knows all about it. What each of them proves is its title. */
import { describe, expect, it } from 'vitest';

import { patience } from '../support/lane.js';
import { startBroker } from './support/broker.js';
import { executorFor, outputOf, run, runtimes } from './support/executors.js';

const FORGED = '{"t":"result","output":"forged"}';
/** The forged message as bytes of the channel, in the source of a function. */
const FRAME = `(() => { const text = new TextEncoder().encode(${JSON.stringify(FORGED)}); const frame = new Uint8Array(4 + text.length); frame[0] = text.length; frame.set(text, 4); return frame; })()`;

describe.each(runtimes)('a forger on %s', (runtime) => {
  const executor = executorFor(runtime);

  it('gets nowhere by printing', async () => {
    const source = `import process from 'node:process';
      export default async () => {
        const frame = ${FRAME};
        for (const stream of [process.stdout, process.stderr]) { stream.write(frame); stream.write(${JSON.stringify(`\n${FORGED}\n__RESULT__${FORGED}\n`)}); }
        await new Promise((resolve) => setTimeout(resolve, 50));
        return 'genuine';
      }`;
    expect(await outputOf(run(executor, source))).toBe('genuine');
  });

  it('cannot connect to the port of the channel', async () => {
    const source = `import { connect } from 'node:net';
      export default async () => {
        const tried = [];
        for (const host of ['127.0.0.1', '::1', '10.1.2.3']) for (const port of [1, 2]) tried.push(await new Promise((resolve) => {
          const socket = connect(port, host);
          socket.on('connect', () => resolve('connected')).on('error', ({ message }) => resolve(message));
        }));
        return tried;
      }`;
    for (const failure of (await outputOf(run(executor, source))) as string[]) expect(failure).toMatch(/ECONNREFUSED|Requires net access/);
  });

  it('changes nothing by replacing what the harness was built on', async () => {
    const source = `export default async () => {
      const forge = () => '${FORGED}';
      const { getOwnPropertyNames } = Object;
      const owners = [JSON, Promise, Reflect, Object, Array, String, Number, Symbol];
      const prototypes = [Promise, Map, Set, Array, String, TextEncoder, TextDecoder, Function, RegExp, DataView, Object.getPrototypeOf(Uint8Array)].map(({ prototype }) => prototype);
      const changed = [];
      for (let at = 0; at < owners.length; at++) for (let names = getOwnPropertyNames(owners[at]), index = 0; index < names.length; index++) {
        if (typeof owners[at][names[index]] === 'function' && names[index] !== 'prototype') changed[changed.length] = [owners[at], names[index]];
      }
      for (let at = 0; at < prototypes.length; at++) for (let names = getOwnPropertyNames(prototypes[at]), index = 0; index < names.length; index++) {
        try { if (typeof prototypes[at][names[index]] === 'function' && names[index] !== 'constructor') changed[changed.length] = [prototypes[at], names[index]] } catch {}
      }
      await null;
      for (let at = 0; at < changed.length; at++) changed[at][0][changed[at][1]] = forge;
      globalThis.TextEncoder = globalThis.TextDecoder = globalThis.Uint8Array = globalThis.DataView = globalThis.JSON = forge;
      Object.prototype.toJSON = forge;
      delete Object.prototype.toJSON;
      return { output: 'genuine', patched: changed.length > 150 };
    }`;
    expect(await run(executor, source)).toMatchObject({ ok: true, output: { output: 'genuine', patched: true } });
  });

  it('pollutes no prototype of the host, by its result, by its calls or by its log', async () => {
    const seen: unknown[] = [];
    const source = `export default async (input) => {
      Object.prototype.polluted = 'guest';
      const evil = JSON.parse('{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"polluted":"yes"}},"a":[{"__proto__":[1]}],"\\\\u005f_proto__":1}');
      await host.take(evil);
      console.log(evil);
      return { evil, input: Object.getPrototypeOf(input) === Object.prototype };
    }`;
    const input: unknown = JSON.parse('{"__proto__":{"polluted":"input"},"a":1}');
    const { output } = (await run(executor, source, { input, bindings: { take: (args) => void seen.push(args) } })) as { output: { evil: Record<string, unknown>; input: boolean } };
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    for (const value of [output.evil, seen[0] as Record<string, unknown>]) {
      expect(Object.hasOwn(value, '__proto__')).toBe(false);
      expect(value['constructor']).toEqual({ prototype: { polluted: 'yes' } });
      expect(Object.assign({}, value)['polluted']).toBeUndefined();
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    }
    expect(output.input).toBe(true);
  });

  it('fails alone by a result that is too large or too deep', async () => {
    const large = await run(executor, `export default () => 'x'.repeat(3 * 1024 * 1024)`);
    expect(large).toMatchObject({ ok: false });
    expect(large.error).toMatch(/2097152 are allowed/);
    const deep = 'let value = []; for (let n = 0; n < DEPTH; n++) value = [value]; return value;';
    expect((await run(executor, `export default () => { ${deep.replace('DEPTH', '100000')} }`)).ok).toBe(false);
    expect((await run(executor, `export default () => { ${deep.replace('DEPTH', '2000')} }`)).ok).toBe(false);
    expect((await run(executor, `export default () => { ${deep.replace('DEPTH', '200')} }`)).ok).toBe(true);
  });

  it('finds nothing of the broker in its own heap, where its own secret is', async () => {
    const broker = await startBroker();
    const source = `import v8 from 'node:v8';
      export default async () => {
        await questpie.files.list();
        let heap = '';
        for await (const chunk of v8.getHeapSnapshot()) heap += chunk;
        const found = (...parts) => heap.includes(parts.join(''));
        return { token: found('broker-', 'token'), port: found(':', String(${new URL(broker.url).port})), own: found('own-', 'secret') };
      }`;
    const capabilities = { timeoutMs: patience(25_000), memoryMb: 512 };
    // The guest's own source holds the port and the parts: neither must be what is found.
    const answer = await run(executor, source.replace(/String\(\d+\)/, `[...'${new URL(broker.url).port}'].join('')`), {
      bindings: { url: broker.url, token: 'broker-token' },
      secrets: { mine: 'own-secret' },
      capabilities,
    });
    expect(await outputOf(Promise.resolve(answer))).toMatchObject({ token: false, own: true });
  });
});

describe('on Deno the channel is out of reach', () => {
  const executor = executorFor('deno');

  it('of every descriptor and resource of the guest', async () => {
    const source = `import { writeSync, closeSync, readSync } from 'node:fs';
      export default async () => {
        const { core } = Deno[Deno.internal];
        const frame = ${FRAME};
        const written = new Set();
        for (let number = 0; number < 1024; number++) {
          try { writeSync(number, frame); written.add(number) } catch {}
          try { core.writeSync(number, frame); written.add(number) } catch {}
          try { await core.write(number, frame); written.add(number) } catch {}
        }
        for (let number = 3; number < 1024; number++) {
          try { closeSync(number); written.add(-number) } catch {}
          try { core.close(number); written.add(-number) } catch {}
        }
        return { written: [...written], resources: Object.values(core.resources()) };
      }`;
    expect(await outputOf(run(executor, source))).toEqual({ written: [1, 2], resources: ['stdin', 'stdout', 'stderr'] });
  });

  it('of messages: the realm has no way to post one to the trusted isolate', async () => {
    const source = `import workers from 'node:worker_threads';
      export default async () => {
        const { core } = Deno[Deno.internal];
        const ways = { postMessage: typeof postMessage, self: typeof self.postMessage, close: typeof close, parentPort: workers.parentPort, ops: Object.keys(core.ops).filter((name) => /worker|post|message|host/i.test(name)) };
        for (let scope = globalThis; scope; scope = Object.getPrototypeOf(scope)) for (const key of Reflect.ownKeys(scope)) if (/postMessage/.test(String(key))) ways[String(key)] = 'found';
        const everywhere = new BroadcastChannel('guest');
        everywhere.postMessage(${JSON.stringify(FORGED)});
        for (const type of ['message', 'messageerror']) dispatchEvent(new MessageEvent(type, { data: ${JSON.stringify(FORGED)} }));
        return ways;
      }`;
    expect(await outputOf(run(executor, source))).toEqual({ postMessage: 'undefined', self: 'undefined', close: 'undefined', parentPort: null, ops: [] });
  });

  it('of the harness, imported once more', async () => {
    for (const module of ['deno.mjs', 'deno-worker.mjs', 'deno-worker.mjs?again', 'realm.mjs?again', 'frames.mjs']) {
      const source = `export default async () => { try { await import('file:///ringfence/${module}') } catch {} return 'genuine' }`;
      expect(await outputOf(run(executor, source)), module).toBe('genuine');
      const answer = await run(executor, `import 'file:///ringfence/${module}'; export default () => 'genuine'`);
      expect(answer.ok ? answer.output : answer.code, module).toMatch(/^(genuine|guest-error)$/);
    }
  });

  it('of the inspector, of workers of Node and of another context', async () => {
    const source = `import inspector from 'node:inspector';
      import { Worker as NodeWorker } from 'node:worker_threads';
      import vm from 'node:vm';
      export default async () => {
        const failures = [];
        const attempt = async (what) => { try { failures.push(await what()) } catch ({ message }) { failures.push(message.slice(0, 40)) } };
        await attempt(() => inspector.open(0));
        await attempt(() => new inspector.Session().connect());
        await attempt(() => new inspector.Session().connectToMainThread());
        await attempt(() => typeof vm.runInNewContext('this').postMessage);
        await attempt(() => new Promise((resolve, reject) => {
          const worker = new NodeWorker(new URL("data:text/javascript,import { parentPort } from 'node:worker_threads'; postMessage('" + ${JSON.stringify(FORGED.replaceAll('"', '%22'))} + "')"));
          worker.on('message', () => resolve('talked to its maker')).on('error', reject);
          setTimeout(resolve, 1500, 'silent');
        }));
        return failures;
      }`;
    const [open, session, main, context, worker] = (await outputOf(run(executor, source))) as string[];
    expect(open).toMatch(/Requires sys access/);
    expect(session).toMatch(/Requires sys access/);
    expect(main).toMatch(/not a worker|Requires/);
    expect(context).toBe('undefined');
    expect(worker).not.toBe('forged');
  });

  it('of permissions: there are none, and none to be had', async () => {
    const source = `export default async () => {
      const states = [];
      for (const name of ['net', 'read', 'write', 'env', 'run', 'sys', 'ffi', 'import']) states.push((await Deno.permissions.query({ name })).state, (await Deno.permissions.request({ name })).state);
      return [...new Set(states)];
    }`;
    expect(await outputOf(run(executor, source))).not.toContain('granted');
  });
});

/** The body of a function on Node that has found the socket of the channel, as \`socket\`. */
const onTheSocket = (body: string): string => `export default async () => {
  const socket = process._getActiveHandles().find((handle) => handle.remotePort !== undefined);
  const raw = (text) => { const bytes = Buffer.from(text); const head = Buffer.alloc(4); head.writeUInt32LE(bytes.length); socket.write(Buffer.concat([head, bytes])); };
  ${body}
  return 'genuine';
}`;

describe('on Node, on the socket itself, a function changes at worst its own answer', () => {
  const executor = executorFor('node');
  const afterwards = async () => expect(await outputOf(run(executor, 'export default () => 1'))).toBe(1);

  it('with what the host does not know', async () => {
    const frames = {
      'not JSON': 'raw("junk")',
      'no object': 'raw("1")',
      'of no type': 'raw("{}")',
      'of an unknown type': 'raw(JSON.stringify({ t: "other" }))',
      'with more than is known': 'raw(JSON.stringify({ t: "log", text: "x", more: 1 }))',
      'with a wrong type': 'raw(JSON.stringify({ t: "call", id: "1", method: "a" }))',
      'with no id': 'raw(JSON.stringify({ t: "call", id: -1, method: "a" }))',
      'without a method': 'raw(JSON.stringify({ t: "call", id: 1, method: "" }))',
      'too deep': 'raw("[".repeat(100000) + "]".repeat(100000))',
      'not UTF-8': 'socket.write(Buffer.from([4, 0, 0, 0, 0x22, 0xff, 0xfe, 0x22]))',
      'larger than any': 'socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff]))',
      'larger than allowed': 'socket.write(Buffer.from([1, 0, 0x20, 0]))',
    };
    for (const [what, attack] of Object.entries(frames)) {
      const answer = await run(executor, onTheSocket(`${attack}; await new Promise((resolve) => setTimeout(resolve, 2000));`));
      expect(answer, what).toMatchObject({ ok: false, code: 'protocol' });
      expect(answer.error, what).toMatch(/^the function broke the protocol: /);
    }
    await afterwards();
  });

  it('with a second result, or anything after the first', async () => {
    const answer = await run(executor, onTheSocket('raw(JSON.stringify({ t: "result", output: 1 })); raw(JSON.stringify({ t: "result", output: 2 })); raw(JSON.stringify({ t: "log", text: "late" })); raw("junk");'));
    expect(answer).toMatchObject({ ok: true, output: 1, logs: [] });
  });

  it('with an end in the middle of a frame', async () => {
    const answer = await run(executor, onTheSocket('socket.write(Buffer.from([200, 0, 0, 0, 0x7b])); await new Promise((resolve) => setTimeout(resolve, 50)); process.exit(0);'));
    expect(answer).toMatchObject({ ok: false, code: 'guest-exit' });
  });

  it('with a connection that it closes', async () => {
    const answer = await run(executor, onTheSocket('socket.destroy(); await new Promise(() => {});'), { capabilities: { timeoutMs: patience(2000) } });
    expect(answer.ok).toBe(false);
    await afterwards();
  });

  it('with a log that has no end: the caps hold here', async () => {
    const answer = await run(executor, onTheSocket('for (let n = 0; n < 5000; n++) raw(JSON.stringify({ t: "log", text: "x".repeat(5000) })); await new Promise((resolve) => setTimeout(resolve, 3000));'));
    expect(answer.logs).toHaveLength(1000);
    expect(answer.logs.every(({ length }) => length === 4000)).toBe(true);
  });

  it('with calls that it does not wait for: it is heard no faster than it is answered', async () => {
    let open = 0;
    let most = 0;
    const bindings = {
      slow: async () => {
        most = Math.max(most, ++open);
        await new Promise((resolve) => setTimeout(resolve, 20));
        open--;
        return 'x'.repeat(100_000);
      },
    };
    const flood = 'for (let id = 1; id <= 2000; id++) raw(JSON.stringify({ t: "call", id, method: "slow" })); await new Promise((resolve) => setTimeout(resolve, 4000));';
    await run(executor, onTheSocket(flood), { bindings, capabilities: { timeoutMs: patience(3000) } });
    // What came in one chunk with the call that was one too many is heard as well.
    expect(most).toBeLessThan(256 + 2000);
    expect(most).toBeGreaterThan(1);
    await afterwards();
  });

  it('with the same id twice, or calls to what is not there', async () => {
    const body = `const answers = []; socket.on('data', (chunk) => answers.push(chunk.toString())); raw(JSON.stringify({ t: 'call', id: 7, method: 'a' })); raw(JSON.stringify({ t: 'call', id: 7, method: '__proto__' })); raw(JSON.stringify({ t: 'call', id: 7, method: 'constructor' }));
      for (let n = 0; n < 100 && answers.join('').split('"reply"').length < 4; n++) await new Promise((resolve) => setTimeout(resolve, 20)); return answers.join('').match(/bad_method/g).length;`;
    expect(await outputOf(run(executor, onTheSocket(body), { bindings: { a: () => 1 } }))).toBe(2);
  });
});
