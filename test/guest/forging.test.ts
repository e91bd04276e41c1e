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
    for (const failure of (await outputOf(run(executor, source))) as string[]) expect(failure).toMatch(/ECONNREFUSED|ENETUNREACH|Requires net access/);
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

  it('of every resource and descriptor that Node has functions for', async () => {
    const source = `import { writeSync, closeSync, readSync, ftruncateSync } from 'node:fs';
      import tty from 'node:tty';
      export default async () => {
        const frame = ${FRAME};
        const reached = new Set();
        for (let number = 3; number < 1024; number++) {
          for (const attempt of [() => writeSync(number, frame), () => readSync(number, new Uint8Array(1)), () => ftruncateSync(number), () => closeSync(number), () => new tty.WriteStream(number).write(frame)]) {
            try { attempt(); reached.add(number) } catch {}
          }
        }
        return [...reached];
      }`;
    expect(await outputOf(run(executor, source))).toEqual([]);
  });

  it('of Deno\'s own internals', async () => {
    const source = `export default () => {
      const found = [];
      for (const owner of [Deno, globalThis]) for (const key of Reflect.ownKeys(owner)) {
        let value; try { value = owner[key] } catch { continue }
        if (value && (typeof value === 'object' || typeof value === 'function')) for (const name of ['core', 'ops', 'resources', 'internalRidSymbol']) try { if (name in value) found.push([String(key), name]) } catch {}
      }
      return [typeof Deno[Deno.internal], typeof __bootstrap, found];
    }`;
    expect(await outputOf(run(executor, source))).toEqual(['undefined', 'undefined', []]);
  });

  // Deno lets every code write to any descriptor of its process this way: what is written must not count.
  it('of a message without the key, on whichever descriptor', async () => {
    const seen = new Set<unknown>();
    for (let number = 3; number < 32; number++) {
      const source = `import { Socket } from 'node:net';
        export default async () => {
          try {
            const socket = new Socket({ fd: ${number}, readable: false });
            await new Promise((resolve) => { socket.on('error', resolve); socket.write(${FRAME}, resolve); setTimeout(resolve, 100); });
          } catch {}
          return 'genuine';
        }`;
      const { ok, output } = await run(executor, source, { capabilities: { timeoutMs: patience(1000) } });
      if (ok) seen.add(output);
    }
    expect([...seen]).toEqual(['genuine']);
  });

  it('of the harness, imported once more', async () => {
    for (const module of ['deno.mjs', 'deno.mjs?again', 'realm.mjs?again', 'frames.mjs']) {
      const source = `export default async () => { try { await import('file:///ringfence/${module}') } catch {} return 'genuine' }`;
      expect(await outputOf(run(executor, source)), module).toBe('genuine');
      const answer = await run(executor, `import 'file:///ringfence/${module}'; export default () => 'genuine'`, { capabilities: { timeoutMs: patience(1500) } });
      expect(answer.ok ? answer.output : answer.code, module).toMatch(/^(genuine|guest-error|timeout)$/);
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
        await attempt(() => typeof vm.runInNewContext('this').Deno);
        await attempt(() => new Promise((resolve, reject) => {
          const worker = new NodeWorker(new URL('data:text/javascript,' + encodeURIComponent("import { parentPort } from 'node:worker_threads'; parentPort.postMessage([typeof Deno, typeof Deno?.[Deno.internal]?.core?.resources === 'function' ? Object.values(Deno[Deno.internal].core.resources()) : []])")));
          worker.on('message', resolve).on('error', reject);
          setTimeout(resolve, 3000, 'silent');
        }));
        return failures;
      }`;
    const [open, session, main, context, worker] = (await outputOf(run(executor, source))) as unknown[];
    expect(open).toMatch(/Requires sys access/);
    expect(session).toMatch(/Requires sys access/);
    expect(main).toMatch(/not a worker|Requires/);
    expect(context).toBe('undefined');
    expect(JSON.stringify(worker)).not.toMatch(/tcp/i);
  });

  it('of permissions: there are none, and none to be had', async () => {
    const source = `export default async () => {
      const states = [];
      for (const name of ['net', 'read', 'write', 'env', 'run', 'sys', 'ffi', 'import']) states.push((await Deno.permissions.query({ name })).state, (await Deno.permissions.request({ name })).state);
      states.push((await Deno.permissions.query({ name: 'net', host: '127.0.0.1:1' })).state);
      return states;
    }`;
    expect(await outputOf(run(executor, source))).not.toContain('granted');
  });

  it('of a heap snapshot: the bytes of a buffer are not in it', async () => {
    const source = `import v8 from 'node:v8';
      export default async () => {
        const key = crypto.getRandomValues(new Uint8Array(16));
        const word = crypto.randomUUID();
        globalThis.kept = () => [key, word];
        let heap = '';
        for await (const chunk of v8.getHeapSnapshot({ exposeInternals: true, exposeNumericValues: true })) heap += chunk;
        const view = new DataView(key.buffer);
        const spellings = [[...key].join(','), [...key].map((byte) => byte.toString(16).padStart(2, '0')).join(''), String(view.getUint32(0)), String(view.getUint32(0, true)), String.fromCharCode(...key)];
        return { key: spellings.some((spelling) => heap.includes(spelling)), word: heap.includes(word) };
      }`;
    expect(await outputOf(run(executor, source, { capabilities: { timeoutMs: patience(25_000), memoryMb: 512 } }))).toEqual({ key: false, word: true });
  });
});

/** A function on Node that has found the socket of the channel: Node hides little. */
const onTheSocket = (body: string): string => `export default async () => {
  const socket = process._getActiveHandles().find((handle) => handle.remotePort !== undefined);
  const raw = (text) => { const bytes = Buffer.from(text); const head = Buffer.alloc(4); head.writeUInt32LE(bytes.length); socket.write(Buffer.concat([head, bytes])); };
  ${body}
  return 'genuine';
}`;

describe('on Node, on the socket itself, a function changes at worst its own answer', () => {
  const executor = executorFor('node');
  const afterwards = async () => expect(await outputOf(run(executor, 'export default () => 1'))).toBe(1);

  it('with junk: it is passed over', async () => {
    const junk = [`raw(${JSON.stringify(FORGED)})`, 'raw("junk")', 'socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff]))', 'socket.write(Buffer.alloc(100_000))', 'socket.write("x")', 'socket.write(Buffer.alloc(4_000_000, 7))'];
    for (const attack of junk) expect(await outputOf(run(executor, onTheSocket(attack))), attack).toBe('genuine');
  });

  it('with junk that has no end', async () => {
    const answer = await run(executor, onTheSocket('for (;;) await new Promise((resolve) => socket.write(Buffer.alloc(1 << 20), resolve));'));
    expect(answer).toMatchObject({ ok: false, code: 'protocol', error: 'the function broke the protocol: more than 16777216 bytes of no frame' });
    await afterwards();
  });

  it('with an end in the middle of a message', async () => {
    const answer = await run(executor, onTheSocket('console.log("x".repeat(3000)); socket.write(Buffer.from([200, 0, 0, 0, 0x7b])); await new Promise((resolve) => setTimeout(resolve, 50)); process.exit(0);'));
    expect(answer).toMatchObject({ ok: false, code: 'guest-exit' });
  });

  it('with a connection that it closes', async () => {
    const answer = await run(executor, onTheSocket('socket.destroy(); await new Promise(() => {});'), { capabilities: { timeoutMs: patience(2000) } });
    expect(answer.ok).toBe(false);
    await afterwards();
  });

  it('with the key, which the inspector shows it: what it says is checked all the same', async () => {
    const source = `import inspector from 'node:inspector';
      export default async () => {
        const session = new inspector.Session();
        session.connect();
        const post = (method, params) => new Promise((resolve, reject) => session.post(method, params, (error, result) => (error ? reject(error) : resolve(result))));
        const socket = process._getActiveHandles().find((handle) => handle.remotePort !== undefined);
        // The frame that the harness writes next carries the key.
        let key = null;
        const write = socket._writeGeneric;
        socket._writeGeneric = function (writev, data, ...rest) { key ??= Buffer.from(data).subarray(0, 16); return write.call(this, writev, data, ...rest); };
        console.log('show');
        await post('Runtime.evaluate', { expression: '1' });
        await new Promise((resolve) => setTimeout(resolve, 20));
        const raw = (text) => { const bytes = Buffer.from(text); const head = Buffer.alloc(4); head.writeUInt32LE(bytes.length); socket.write(Buffer.concat([key, head, bytes])); };
        raw(JSON.stringify({ t: 'log', text: 'log: ' + 'x'.repeat(10_000) }));
        raw(JSON.stringify({ t: 'other' }));
        await new Promise((resolve) => setTimeout(resolve, 1000));
        return 'genuine';
      }`;
    const answer = await run(executor, source);
    expect(answer).toMatchObject({ ok: false, code: 'protocol' });
    expect(answer.logs.map(({ length }) => length)).toEqual([9, 4000]);
    await afterwards();
  });
});
