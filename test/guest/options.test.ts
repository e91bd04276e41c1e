import { describe, expect, it } from 'vitest';

import { createExecutor } from '../../src/guest/executor.js';
import { checkRequest } from '../../src/guest/request.js';

describe('createExecutor', () => {
  it.each<[unknown, ErrorConstructor, string]>([
    [undefined, TypeError, 'options must be an object, got undefined'],
    [{}, TypeError, "runtime must be 'deno' or 'node', got undefined"],
    [new Map([['runtime', 'node']]), TypeError, "runtime must be 'deno' or 'node', got undefined"],
    [{ runtime: 'bun' }, RangeError, 'runtime must be \'deno\' or \'node\', got "bun"'],
    [{ runtime: 'Deno' }, RangeError, 'runtime must be \'deno\' or \'node\', got "Deno"'],
    [{ runtime: 'node', warm: -1 }, RangeError, 'warm must be a finite integer >= 0, got -1'],
    [{ runtime: 'node', warm: Number.NaN }, RangeError, 'warm must be a finite integer >= 0, got NaN'],
    [{ runtime: 'node', warm: 1e9 }, RangeError, 'warm must be at most 1000, got 1000000000'],
    [{ runtime: 'node', warm: '2' }, TypeError, 'warm must be a finite integer >= 0, got "2"'],
    [{ runtime: 'node', command: './node' }, RangeError, 'command must be an absolute path, or a name without a slash that is looked up in PATH, got "./node"'],
    [{ runtime: 'node', isolation: 'none' }, RangeError, 'isolation must be \'strict\' or \'best-effort\', got "none"'],
    [{ runtime: 'node', brokerUrl: 'http://u:hidden@h' }, RangeError, 'brokerUrl must be an http or https URL without user, password and fragment, got "http://…@h"'],
    [{ runtime: 'node', runtimes: 1 }, TypeError, 'runtimes is not a known option; did you mean runtime?'],
    [{ runtime: 'node', maxBytes: 1 }, TypeError, 'maxBytes is not a known option; did you mean network.maxBytes?'],
    [{ runtime: 'node', network: new Map() }, TypeError, 'network must be an object, got a Map'],
    [{ runtime: 'node', network: { allow: ['a.test'] } }, TypeError, 'network.allow is not a known option; did you mean network.allowPrivate?'],
    [{ runtime: 'node', network: { hosts: new Map() } }, TypeError, 'network.hosts must be an object of addresses by name, got a Map'],
    [{ runtime: 'node', network: { maxBytes: 0 } }, RangeError, 'network.maxBytes must be a positive finite integer, got 0'],
  ])('refuses what is wrong: %o', (options, kind, message) => {
    const make = () => createExecutor(options as never);
    expect(make).toThrow(kind);
    expect(make).toThrow(message);
  });

  it('takes what is absent as undefined', async () => {
    await createExecutor({ runtime: 'node', command: undefined, isolation: undefined, brokerUrl: undefined, warm: undefined, network: undefined }).close();
  });
});

describe('a request', () => {
  it.each<[object, string]>([
    [{ capabilities: new Map([['timeoutMs', 1]]) }, 'capabilities must be an object, got a Map'],
    [{ secrets: new Map([['key', 'hidden']]) }, 'secrets must be an object of strings, got a Map'],
    [{ secrets: new Headers({ key: 'hidden' }) }, 'secrets must be an object of strings, got a Headers'],
    [{ secrets: { key: 1 } }, 'secrets must be an object of strings'],
    [{ bindings: { '': () => 1 } }, 'bindings must be functions with names of 1 to 512 characters'],
    [{ bindings: { ['n'.repeat(513)]: () => 1 } }, 'bindings must be functions with names of 1 to 512 characters'],
    [{ bindings: new Map([['sum', () => 1]]) }, 'bindings must be an object of functions, or { url, token } as strings, got a Map'],
    [{ bindings: new (class Host { sum() { return 1; } })() }, 'bindings must be an object of functions, or { url, token } as strings, got a Host'],
  ])('whose entries lie elsewhere is refused: %o', (change, problem) => {
    expect(checkRequest({ source: '1', ...change })).toEqual({ problem });
  });

  it('that cannot be read is refused, too', () => {
    for (const property of ['source', 'input', 'capabilities', 'secrets', 'bindings', 'signal']) {
      const request = Object.defineProperty({ source: '1' }, property, { get: () => { throw new Error('mine'); } });
      expect(checkRequest(request)).toEqual({ problem: 'the request cannot be read: a property of it throws' });
    }
  });
});
