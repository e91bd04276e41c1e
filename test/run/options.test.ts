import { constants } from 'node:buffer';
import { Readable } from 'node:stream';
import { runInNewContext } from 'node:vm';

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { validateOptions } from '../../src/run/options.js';

const minimal = { command: '/bin/true', args: [], timeoutMs: 5000 };

const streamLike = { pipe() {}, on() {}, destroy() {}, [Symbol.asyncIterator]: () => undefined };

function failure(extra: Record<string, unknown>): Error {
  try {
    validateOptions({ ...minimal, ...extra });
  } catch (error) {
    return error as Error;
  }
  throw new Error(`accepted ${Object.keys(extra).join()}`);
}

describe('options that are right', () => {
  it('takes objects of any realm, without a prototype, and process.env', () => {
    const limits = runInNewContext('({ memoryMb: 64 })') as object;
    const filesystem = Object.assign(Object.create(null), { tmpMb: 8 }) as object;
    expect(validateOptions({ ...minimal, limits, filesystem, env: process.env })).toMatchObject({ limits: { memoryMb: 64 }, filesystem: { tmpMb: 8 }, env: { PATH: process.env['PATH'] } });
    const bytes = runInNewContext('new Uint8Array([97])') as Uint8Array;
    expect(validateOptions({ ...minimal, stdin: bytes }).stdin).toBe(bytes);
  });

  it('gets the defaults of the contract, and null for what is absent', () => {
    expect(validateOptions(minimal)).toEqual({
      command: '/bin/true',
      args: [],
      cwd: null,
      cwdReadOnly: false,
      env: {},
      timeoutMs: 5000,
      shutdownSignal: 'SIGTERM',
      gracePeriodMs: 2000,
      stdin: null,
      keepOutput: true,
      maxStdoutBytes: 8 * 1024 * 1024,
      maxStderrBytes: 1024 * 1024,
      nodeHeapMb: null,
      signal: null,
      onStdout: null,
      onStderr: null,
      network: 'none',
      seccomp: null,
      filesystem: { read: [], write: [], tmpMb: 256 },
      limits: { memoryMb: 512, pids: 128, cpus: null, cpuTimeMs: null, openFiles: 1024, fileSizeMb: null },
      isolation: 'strict',
    });
  });

  it('takes undefined for absent, in sections too', () => {
    const given = { ...minimal, cwd: undefined, stdin: undefined, limits: { cpus: undefined }, gracePeriodMs: undefined };
    expect(validateOptions(given)).toEqual(validateOptions(minimal));
  });

  it('clamps the default grace period below a short timeout', () => {
    expect(validateOptions({ ...minimal, timeoutMs: 2000 }).gracePeriodMs).toBe(1999);
    expect(validateOptions({ ...minimal, timeoutMs: 1 }).gracePeriodMs).toBe(0);
    expect(validateOptions({ ...minimal, timeoutMs: 2001 }).gracePeriodMs).toBe(2000);
  });

  it('keeps a variable named __proto__ and does not share objects with the caller', () => {
    const env = JSON.parse('{"__proto__":"x","A":"1"}') as Record<string, string>;
    const args = ['one'];
    const options = validateOptions({ ...minimal, env, args });
    args.push('two');
    expect(Object.entries(options.env)).toEqual([['__proto__', 'x'], ['A', '1']]);
    expect(options.args).toEqual(['one']);
  });

  it('takes process.env, streams, bytes and foreign abort signals as they are', () => {
    const stdin = Readable.from(['x']);
    expect(validateOptions({ ...minimal, env: process.env, stdin }).stdin).toBe(stdin);
    const foreign = { ...streamLike };
    expect(validateOptions({ ...minimal, stdin: foreign }).stdin).toBe(foreign);
    const bytes = new Uint8Array(3);
    expect(validateOptions({ ...minimal, stdin: bytes }).stdin).toBe(bytes);
    const { signal } = new AbortController();
    expect(validateOptions({ ...minimal, signal }).signal).toBe(signal);
  });
});

describe('options that are wrong', () => {
  const cases: [Record<string, unknown>, typeof TypeError | typeof RangeError, string][] = [
    [{ command: '' }, RangeError, 'command must be a non-empty string, got ""'],
    [{ command: undefined }, TypeError, 'command must be a non-empty string, got undefined'],
    [{ command: 7 }, TypeError, 'command must be a non-empty string, got 7'],
    [{ command: './x' }, RangeError, 'command must be an absolute path, or a name without a slash that is looked up in PATH, got "./x"'],
    [{ command: 'a\0b' }, RangeError, 'command must not contain a NUL character or a lone surrogate, got "a\\u0000b"'],
    [{ args: undefined }, TypeError, 'args must be an array of strings, got undefined'],
    [{ args: 'x' }, TypeError, 'args must be an array of strings, got "x"'],
    [{ args: ['a', 1] }, TypeError, 'args[1] must be a string, got 1'],
    [{ args: ['a', '\0'] }, RangeError, 'args[1] must not contain a NUL character or a lone surrogate, got "\\u0000"'],
    [{ args: ['\ud800'] }, RangeError, 'args[0] must not contain a NUL character or a lone surrogate, got "\\ud800"'],
    [{ cwd: 'relative' }, RangeError, 'cwd must be an absolute path, got "relative"'],
    [{ cwd: '' }, RangeError, 'cwd must be an absolute path, got ""'],
    [{ cwd: '/a\0b' }, RangeError, 'cwd must not contain a NUL character or a lone surrogate, got "/a\\u0000b"'],
    [{ cwdReadOnly: 1 }, TypeError, 'cwdReadOnly must be a boolean, got 1'],
    [{ timeoutMs: undefined }, TypeError, 'timeoutMs must be a positive finite integer, got undefined'],
    [{ timeoutMs: '5' }, TypeError, 'timeoutMs must be a positive finite integer, got "5"'],
    [{ timeoutMs: 5n }, TypeError, 'timeoutMs must be a positive finite integer, got a bigint'],
    [{ timeoutMs: 0 }, RangeError, 'timeoutMs must be a positive finite integer, got 0'],
    [{ timeoutMs: -1 }, RangeError, 'timeoutMs must be a positive finite integer, got -1'],
    [{ timeoutMs: 1.5 }, RangeError, 'timeoutMs must be a positive finite integer, got 1.5'],
    [{ timeoutMs: NaN }, RangeError, 'timeoutMs must be a positive finite integer, got NaN'],
    [{ timeoutMs: Infinity }, RangeError, 'timeoutMs must be a positive finite integer, got Infinity'],
    [{ timeoutMs: 2 ** 31 }, RangeError, 'timeoutMs must be at most 2147483647, got 2147483648'],
    [{ timeoutMs: 2 ** 53 }, RangeError, 'timeoutMs must be at most 2147483647, got 9007199254740992'],
    [{ timeoutMs: 1e300 }, RangeError, 'timeoutMs must be at most 2147483647, got 1e+300'],
    [{ timeoutMs: -(2 ** 53) }, RangeError, 'timeoutMs must be a positive finite integer, got -9007199254740992'],
    [{ timeoutMs: 100, gracePeriodMs: 100 }, RangeError, 'gracePeriodMs (100) must be < timeoutMs (100)'],
    [{ gracePeriodMs: 2 ** 53 }, RangeError, 'gracePeriodMs must be at most 2147483647, got 9007199254740992'],
    [{ limits: { pids: 2 ** 53 } }, RangeError, 'limits.pids must be at most 4194304, got 9007199254740992'],
    [{ gracePeriodMs: -1 }, RangeError, 'gracePeriodMs must be a finite integer >= 0, got -1'],
    [{ shutdownSignal: 'SIGBREAK' }, RangeError, 'shutdownSignal must be the name of a signal of Linux, for example "SIGTERM", got "SIGBREAK"'],
    [{ shutdownSignal: 'TERM' }, RangeError, 'shutdownSignal must be the name of a signal of Linux, for example "SIGTERM", got "TERM"'],
    [{ shutdownSignal: 'toString' }, RangeError, 'shutdownSignal must be the name of a signal of Linux, for example "SIGTERM", got "toString"'],
    [{ shutdownSignal: 15 }, TypeError, 'shutdownSignal must be the name of a signal of Linux, for example "SIGTERM", got 15'],
    [{ stdin: 5 }, TypeError, 'stdin must be a string, a Uint8Array or a Readable, got 5'],
    [{ stdin: null }, TypeError, 'stdin must be a string, a Uint8Array or a Readable, got null'],
    [{ stdin: { ...streamLike, destroy: undefined } }, TypeError, 'stdin must be a string, a Uint8Array or a Readable, got an object'],
    [{ maxStdoutBytes: 2 ** 53, keepOutput: false }, RangeError, 'maxStdoutBytes must be at most 9007199254740991, got 9007199254740992'],
    [{ maxStdoutBytes: 0 }, RangeError, 'maxStdoutBytes must be a positive finite integer, got 0'],
    [{ maxStderrBytes: constants.MAX_STRING_LENGTH + 1 }, RangeError, `maxStderrBytes must be at most ${constants.MAX_STRING_LENGTH} unless keepOutput is false, got ${constants.MAX_STRING_LENGTH + 1}`],
    [{ nodeHeapMb: 0.5 }, RangeError, 'nodeHeapMb must be a positive finite integer, got 0.5'],
    [{ signal: 'SIGTERM' }, TypeError, 'signal must be an AbortSignal, got "SIGTERM"'],
    [{ signal: new AbortController() }, TypeError, 'signal must be an AbortSignal, got an AbortController'],
    [{ signal: { aborted: false, addEventListener() {} } }, TypeError, 'signal must be an AbortSignal, got an object'],
    [{ onStdout: 'log' }, TypeError, 'onStdout must be a function, got "log"'],
    [{ network: 'all' }, RangeError, "network must be 'none', 'host' or { allow: [...] }, got \"all\""],
    [{ network: true }, TypeError, "network must be 'none', 'host' or { allow: [...] }, got true"],
    [{ network: ['a.test'] }, TypeError, "network must be 'none', 'host' or { allow: [...] }, got an array"],
    [{ network: null }, TypeError, "network must be 'none', 'host' or { allow: [...] }, got null"],
    [{ network: 'https://me:secret@api.test' }, RangeError, "network must be 'none', 'host' or { allow: [...] }, got \"https://…@api.test\""],
    [{ filesystem: { read: ['node_modules/@scope/a?b'] } }, RangeError, 'filesystem.read[0] must be an absolute path, got "node_modules/@scope/a?b"'],
    [{ filesystem: { read: ['x'] } }, RangeError, 'filesystem.read[0] must be an absolute path, got "x"'],
    [{ filesystem: { write: '/x' } }, TypeError, 'filesystem.write must be an array of absolute paths, got "/x"'],
    [{ filesystem: new Map([['read', ['/x']]]) }, TypeError, 'filesystem must be an object, got a Map'],
    [{ limits: new Map([['memoryMb', 64]]) }, TypeError, 'limits must be an object, got a Map'],
    [{ limits: new Set() }, TypeError, 'limits must be an object, got a Set'],
    [{ limits: new Date() }, TypeError, 'limits must be an object, got a Date'],
    [{ limits: new (class Limits { get memoryMb() { return 64; } })() }, TypeError, 'limits must be an object, got a Limits'],
    [{ seccomp: new Map([['profile', '/x']]) }, TypeError, 'seccomp must be an object, got a Map'],
    [{ network: new Map([['allow', []]]) }, TypeError, "network must be 'none', 'host' or { allow: [...] }, got a Map"],
    [{ env: new Map([['A', 'b']]) }, TypeError, 'env must be an object of strings, got a Map'],
    [{ env: new Headers({ a: 'b' }) }, TypeError, 'env must be an object of strings, got a Headers'],
    [{ stdin: new Proxy(new Uint8Array(4), {}) }, TypeError, 'stdin must be a string, a Uint8Array or a Readable, got a Proxy'],
    [{ filesystem: null }, TypeError, 'filesystem must be an object, got null'],
    [{ limits: { memoryMb: -4 } }, RangeError, 'limits.memoryMb must be a positive finite integer, got -4'],
    [{ limits: { cpus: 0 } }, RangeError, 'limits.cpus must be a number of at least 0.01, got 0'],
    [{ limits: { cpus: NaN } }, RangeError, 'limits.cpus must be a positive finite number, got NaN'],
    [{ limits: { openFiles: 2 } }, RangeError, 'limits.openFiles must be a finite integer of at least 3, got 2'],
    [{ isolation: 'lax' }, RangeError, "isolation must be 'strict' or 'best-effort', got \"lax\""],
    [{ isolation: false }, TypeError, "isolation must be 'strict' or 'best-effort', got false"],
  ];
  it.each(cases)('%o is refused by name', (extra, type, message) => {
    const error = failure(extra);
    expect(error.message).toBe(message);
    expect(error).toBeInstanceOf(type);
  });

  it.each([null, undefined, 5, 'x', []])('options that are %o are a TypeError', (input) => {
    expect(() => validateOptions(input)).toThrow(TypeError);
    expect(() => validateOptions(input)).toThrow(/^options must be an object, got /);
  });

  it('names what cannot be looked at', () => {
    const stdin = { ...streamLike, get pipe(): never { throw new Error('no'); } };
    expect(failure({ stdin }).message).toBe('stdin must be a string, a Uint8Array or a Readable, got an object');
  });

  it('names an unknown option and what was probably meant', () => {
    expect(failure({ timeout: 5 }).message).toBe('timeout is not a known option; did you mean timeoutMs?');
    expect(failure({ limits: { memory: 5 } }).message).toBe('limits.memory is not a known option; did you mean limits.memoryMb?');
    expect(failure({ limits: { pidz: 5 } }).message).toBe('limits.pidz is not a known option; did you mean limits.pids?');
    expect(failure({ memoryMb: 5 }).message).toBe('memoryMb is not a known option; did you mean limits.memoryMb?');
    expect(failure({ filesystem: { cwd: '/' } }).message).toBe('filesystem.cwd is not a known option; did you mean cwd?');
    expect(failure({ limits: { xyzzy: 1 } }).message).toMatch(/^limits\.xyzzy is not a known option; known are limits\.memoryMb, /);
    expect(failure({ timeout: 5, timeoutMs: undefined }).message).toContain('did you mean timeoutMs?');
  });

  it('names a bad variable and never shows its value', () => {
    const secret = 'hunter2';
    expect(failure({ env: { 'A=B': secret } }).message).toMatch(/^env\["A=B"\] must have a name/);
    expect(failure({ env: { '': secret } }).message).toMatch(/^env\[""\] must have a name/);
    expect(failure({ env: { TOKEN: `${secret}\0` } }).message).toMatch(/^env\.TOKEN must not contain a NUL/);
    expect(failure({ env: { TOKEN: 12345 } }).message).toBe('env.TOKEN must be a string, got a number');
    expect(failure({ env: { TOKEN: 12345 } })).toBeInstanceOf(TypeError);
    expect(failure({ env: [] }).message).toBe('env must be an object of strings, got an array');
    expect(failure({ env: new Map([['TOKEN', secret]]) }).message).toMatch(/^env must be an object of strings, got an? /);
    for (const env of [{ 'A=B': secret }, { TOKEN: `${secret}\0` }]) expect(failure({ env }).message).not.toContain(secret);
  });

  it('throws nothing but a TypeError or RangeError that begins with the field, whatever comes', () => {
    const fields = Object.keys(validateOptions(minimal));
    fc.assert(
      fc.property(fc.constantFrom(...fields), fc.anything({ withBigInt: true, withNullPrototype: true }), (field, value) => {
        try {
          validateOptions({ ...minimal, [field]: value });
        } catch (error) {
          expect(error instanceof TypeError || error instanceof RangeError).toBe(true);
          expect((error as Error).message.startsWith(field) || (error as Error).message.startsWith('gracePeriodMs (')).toBe(true);
        }
      }),
    );
  });
});
