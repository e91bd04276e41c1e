/** The parts that need no sandbox. */
import { chmodSync, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { brokerProblem } from '../../src/guest/broker.js';
import { describeEnd, guestMessage } from '../../src/guest/errors.js';
import { findDeno } from '../../src/guest/find-deno.js';
import { encodeFrame, FrameReader, ProtocolError } from '../../src/guest/frames.js';
import { harnessFile, harnessScript } from '../../src/guest/harness-files.js';
import { parseForeignJson } from '../../src/guest/json.js';
import { Logs } from '../../src/guest/logs.js';
import { compileGuestNetwork } from '../../src/guest/network.js';
import { checkRequest } from '../../src/guest/request.js';
import type { SandboxResult } from '../../src/run/result.js';
import { temporaryDirectory } from '../support/temporary.js';

describe('frames', () => {
  const key = Buffer.from('0123456789abcdef');

  it('come back as they were, however the stream is cut and whatever lies between them', () => {
    const junk = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(fc.array(fc.tuple(junk, fc.string({ unit: 'grapheme', maxLength: 60 })), { maxLength: 6 }), fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }), (parts, cuts) => {
        const stream = Buffer.concat(parts.flatMap(([between, text]) => [between, key, encodeFrame(text)]));
        const reader = new FrameReader(key, 1000);
        const texts: string[] = [];
        for (let at = 0, turn = 0; at < stream.length; turn++) {
          const end = Math.min(stream.length, at + (cuts[turn % cuts.length] ?? 1));
          texts.push(...reader.push(stream.subarray(at, end)));
          at = end;
        }
        expect(texts).toEqual(parts.map(([, text]) => text));
      }),
    );
  });

  it('are refused when they are too long or no text', () => {
    expect(() => [...new FrameReader(key, 4).push(Buffer.concat([key, encodeFrame('12345')]))]).toThrow(ProtocolError);
    expect([...new FrameReader(key, 4).push(Buffer.concat([key, encodeFrame('1234')]))]).toEqual(['1234']);
    expect(() => [...new FrameReader(key, 9).push(Buffer.concat([key, Buffer.from([2, 0, 0, 0, 0xc3, 0x28])]))]).toThrow(ProtocolError);
  });
});

describe('JSON of a stranger', () => {
  it('is what it says, whatever it is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value, (key, each: unknown) => (key === '__proto__' ? undefined : each));
        expect(JSON.stringify(parseForeignJson(JSON.stringify(value)))).toBe(text);
      }),
    );
  });

  it('has no member that would become a prototype, however it is spelled', () => {
    const texts = ['{"__proto__":{"a":1},"b":2}', '{"\\u005f\\u005fproto\\u005f_":{"a":1},"b":2}', '[{"c":{"__proto__":1,"b":2}}]'];
    for (const text of texts) expect(JSON.stringify(parseForeignJson(text))).not.toMatch(/__proto__|"a"/);
    expect(parseForeignJson('{"constructor":{"prototype":1},"x":"__proto__"}')).toEqual({ constructor: { prototype: 1 }, x: '__proto__' });
  });

  it('nests 512 levels at most; brackets in strings are none', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(() => parseForeignJson(nested(512))).not.toThrow();
    expect(() => parseForeignJson(nested(513))).toThrow(ProtocolError);
    expect(parseForeignJson(JSON.stringify(nested(600)))).toBe(nested(600));
    expect(parseForeignJson(JSON.stringify(`\\"${nested(600)}`))).toBe(`\\"${nested(600)}`);
    for (const text of ['', '{', '[1,]', 'undefined', '\u0000']) expect(() => parseForeignJson(text), text).toThrow(ProtocolError);
  });
});

describe('a request', () => {
  it('is clamped, and what is no number becomes the default', () => {
    const of = (capabilities: unknown) => {
      const checked = checkRequest({ source: 'x', capabilities });
      return 'problem' in checked ? checked.problem : [checked.timeoutMs, checked.memoryMb];
    };
    expect(of(undefined)).toEqual([5000, 128]);
    expect(of({})).toEqual([5000, 128]);
    expect(of({ timeoutMs: 0, memoryMb: 0 })).toEqual([1, 16]);
    expect(of({ timeoutMs: -5, memoryMb: 15.4 })).toEqual([1, 16]);
    expect(of({ timeoutMs: 1e9, memoryMb: 1e9 })).toEqual([30_000, 1024]);
    expect(of({ timeoutMs: 99.6, memoryMb: 100.2 })).toEqual([100, 100]);
    for (const value of ['100', null, undefined, Number.NaN, Number.POSITIVE_INFINITY, {}, []]) expect(of({ timeoutMs: value, memoryMb: value })).toEqual([5000, 128]);
  });

  it('names its bindings by what they are', () => {
    const kindOf = (bindings: unknown) => {
      const checked = checkRequest({ source: 'x', bindings });
      return 'problem' in checked ? checked.problem : checked.bindings.kind;
    };
    expect(kindOf(undefined)).toBe('none');
    expect(kindOf({})).toBe('functions');
    expect(kindOf({ a: () => 1, ['n'.repeat(512)]: () => 2 })).toBe('functions');
    expect(kindOf({ url: () => 1, token: () => 2 })).toBe('functions');
    expect(kindOf({ url: 'http://a', token: 't' })).toBe('broker');
    for (const bindings of [null, 1, 'x', { a: 1 }, { '': () => 1 }, { ['n'.repeat(513)]: () => 1 }, { url: 'http://a' }, { url: 'http://a', token: 1 }]) expect(kindOf(bindings)).toMatch(/bindings must be/);
  });
});

describe('a message of a guest', () => {
  it('is without what the harness calls its source, without excerpts and stacks', () => {
    expect(guestMessage('plain')).toBe('plain');
    expect(guestMessage('two\nlines')).toBe('two\nlines');
    expect(guestMessage("Cannot find package 'x' imported from data:text/javascript,export%20default%20('a')")).toBe("Cannot find package 'x' imported from the function");
    expect(guestMessage('Expected ;\n  |\n1 | let secret\n  |    ~\n    at blob:null/1b4e28ba-2fa1:1:29')).toBe('Expected ;');
    expect(guestMessage('bad\n    at Object.f (ext:core/01.js:1:2)\n    at file:///ringfence/deno.mjs:1:1')).toBe('bad');
    expect(guestMessage('x'.repeat(10_000))).toHaveLength(4000);
  });

  // By patterns that backtrack each of these takes minutes, in which the event loop does nothing else.
  it.each([' ', '\n', '\t ', '1', ' 1', ' at', 'blob:', 'data:text/javascript', ' at data', '|'])('of two million characters, all %j, is done with at once', (piece) => {
    const text = piece.repeat(2_000_000 / piece.length);
    expect(guestMessage(`first${text}last`)).toMatch(/^first/);
    expect(guestMessage(text).length).toBeLessThanOrEqual(4000);
  });
});

it('a log holds no more of a guest\'s text than it shows', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const logs = new Logs();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let line = 0; line < 100; line++) logs.add(`log: ${line} ${Buffer.alloc(1 << 20, 'x').toString()}`);
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(20 << 20);
  expect(logs.lines).toHaveLength(100);
  expect(logs.lines[99]).toHaveLength(4000);
});

describe('the end of a sandbox that has not answered', () => {
  const usage = { wallMs: 1, cpuUserMs: null, cpuSystemMs: null, peakMemoryBytes: null, peakPids: null, oomKills: null, pidsRefused: null };
  const ended = (result: Partial<SandboxResult>) => describeEnd({ outcome: 'exit', exitCode: null, signal: null, stderr: '', error: null, usage, ...result } as SandboxResult, 64).code;

  it('is told by what the kernel and the runtime say', () => {
    expect(ended({ exitCode: 0 })).toBe('guest-exit');
    expect(ended({ signal: 'SIGSEGV' })).toBe('guest-exit');
    expect(ended({ signal: 'SIGABRT', stderr: 'FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory' })).toBe('out-of-memory');
    expect(ended({ signal: 'SIGTRAP', stderr: '# Fatal JavaScript out of memory: Reached heap limit' })).toBe('out-of-memory');
    expect(ended({ exitCode: 1, stderr: 'JavaScript heap out of memory' })).toBe('guest-exit');
    expect(ended({ outcome: 'out-of-memory' })).toBe('out-of-memory');
    expect(ended({ outcome: 'overflow-stdout' })).toBe('output-limit');
    expect(ended({ exitCode: 1, usage: { ...usage, pidsRefused: 2 } })).toBe('process-limit');
    expect(ended({ outcome: 'spawn-error', error: { code: 'cgroup-unavailable', stage: null, syscall: null, errno: null, hint: 'h' } })).toBe('cgroup-unavailable');
  });
});

describe('the log', () => {
  it('is capped in lines and in characters', () => {
    const told: string[] = [];
    const logs = new Logs((line) => told.push(line));
    logs.add('x'.repeat(5000));
    for (let n = 0; n < 2000; n++) logs.add(String(n));
    expect(logs.lines).toHaveLength(1000);
    expect(logs.lines[0]).toHaveLength(4000);
    expect(told).toEqual(logs.lines);
  });
});

describe('the broker that a request names', () => {
  it('must be the one that is allowed, if one is', () => {
    expect(brokerProblem('https://a.test/rpc', undefined)).toBeNull();
    expect(brokerProblem('https://A.test/rpc/', 'https://a.test/rpc')).toBeNull();
    expect(brokerProblem('https://a.test:443/rpc', 'https://a.test/rpc')).toBeNull();
    for (const url of ['https://a.test/rpc?x', 'https://a.test/other', 'http://a.test/rpc', 'https://a.test:8443/rpc', 'https://b.test/rpc']) expect(brokerProblem(url, 'https://a.test/rpc'), url).toMatch(/configured/);
    for (const url of ['', 'x', 'ftp://a.test', 'https://u@a.test/', 'https://u:p@a.test/', 'https://a.test/#x', 'file:///etc/passwd']) expect(brokerProblem(url, undefined), url).toMatch(/must be/);
    expect(brokerProblem('https://a.test/', 'nonsense')).toMatch(/configured/);
  });
});

describe('the two axes of the network', () => {
  it('are one namespace and two lists', async () => {
    expect(await compileGuestNetwork([], [], {})).toEqual({ network: 'none', net: [], import: [] });
    const compiled = await compileGuestNetwork(['api.test', '*.wild.test:8443', '[2606:4700:4700::1111]:443'], ['esm.test:443'], { hosts: { 'esm.test': '93.184.216.34', 'not.listed': '93.184.216.35' } });
    expect(compiled.net).toEqual(['api.test:443', 'api.test:80', '*.wild.test:8443', '[2606:4700:4700::1111]:443']);
    expect(compiled.import).toEqual(['esm.test:443']);
    if (compiled.network === 'none') throw new Error('no network');
    expect([...compiled.network.names.keys()]).toEqual(['api.test', 'esm.test']);
    expect([...compiled.network.pins.keys()]).toEqual(['esm.test']);
    await expect(compileGuestNetwork(['a.test', '*.com'], [], {})).rejects.toThrow(/\*\.com/);
    await expect(compileGuestNetwork([], ['10.0.0.1'], {})).rejects.toThrow(/10\.0\.0\.1/);
  });
});

describe('the program of Deno', () => {
  it('is DENO_BIN, or the first program in PATH, but no script', () => {
    const directory = temporaryDirectory();
    const [script, link, program] = ['script', 'link', 'program'].map((name) => path.join(directory, name)) as [string, string, string];
    for (const each of [script, link, program]) mkdirSync(each);
    writeFileSync(path.join(script, 'deno'), '#!/usr/bin/env node\n', { mode: 0o755 });
    symlinkSync('/nowhere', path.join(link, 'deno'));
    copyFileSync('/bin/true', path.join(program, 'deno'));
    const find = (env: Record<string, string>) => findDeno(env);
    expect(find({ DENO_BIN: '/x/deno', PATH: program })).toBe('/x/deno');
    expect(find({ PATH: `${script}:${link}:relative:${program}` })).toBe(path.join(program, 'deno'));
    chmodSync(path.join(program, 'deno'), 0o644);
    // Root may read what it may not execute: then that of the npm package is next.
    expect(find({ PATH: `${script}:${program}` })).not.toContain(directory);
  });
});

describe('the harness', () => {
  it.each(['deno', 'node'])('is one file for %s that imports nothing of its own', (runtime) => {
    const { path: place, content } = runtime === 'deno' ? harnessFile(runtime) : harnessScript(runtime);
    expect(place).toBe(runtime === 'deno' ? '/ringfence/deno.mjs' : '/ringfence/node.cjs');
    if (runtime === 'node') expect(content).not.toMatch(/^import /m);
    expect(content).not.toMatch(/from '\.\//);
    expect(content).not.toMatch(/^export /m);
    expect(content.match(/^const \{ bare, bareMemory, Splitter \} = /m)).not.toBeNull();
    expect(content.match(/^const \{ prepare, fail \} = /m)).not.toBeNull();
  });
});
