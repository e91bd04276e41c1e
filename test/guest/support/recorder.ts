/**
 * A function that replaces whatever can be replaced in its realm, makes the harness send and receive, and looks through every
 * `this`, argument, key and value that came by. It answers with how much that was, where, and with the bytes that are not its own:
 * those in it that begin as no JSON text does, as the key and a frame do.
 */
export const recorderSource = `export default async () => {
  const { apply, construct, ownKeys, getPrototypeOf, getOwnPropertyDescriptor, defineProperty } = Reflect;
  const { isView } = ArrayBuffer, OwnBytes = Uint8Array, OwnProxy = Proxy, text = String;
  const typed = getPrototypeOf(OwnBytes.prototype);
  const getter = (owner, name) => getOwnPropertyDescriptor(owner, name).get;
  const bufferOf = getter(typed, 'buffer'), viewBufferOf = getter(DataView.prototype, 'buffer'), sizeOf = getter(ArrayBuffer.prototype, 'byteLength');
  const typedLength = getter(typed, 'length');
  const originals = { __proto__: null, buffer: bufferOf, byteLength: getter(typed, 'byteLength'), byteOffset: getter(typed, 'byteOffset'), length: typedLength };
  const { has: setHas, add: setAdd } = Set.prototype, OwnSet = Set;
  let seen;
  const found = { __proto__: null };
  const wheres = { __proto__: null };
  let recorded = 0, busy = true, strangers = 0;

  const bytesIn = (value) => {
    try { return new OwnBytes(apply(bufferOf, value, [])) } catch {}
    try { return new OwnBytes(apply(viewBufferOf, value, [])) } catch {}
    try { apply(sizeOf, value, []); return new OwnBytes(value) } catch {}
    return null;
  };
  const look = (value, where, depth) => {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function') || depth > 4) return;
    const bytes = bytesIn(value);
    if (bytes !== null) {
      let any = false;
      const length = apply(typedLength, bytes, []);
      for (let at = 0; at < length && at < 64; at++) any ||= bytes[at] !== 0;
      if (length >= 16 && any && bytes[0] !== 0x7b) { found[where] = (found[where] ?? 0) + 1; strangers++; }
      return;
    }
    if (apply(setHas, seen, [value])) return;
    apply(setAdd, seen, [value]);
    let keys; try { keys = ownKeys(value) } catch { return }
    for (let at = 0; at < keys.length && at < 200; at++) {
      let descriptor; try { descriptor = getOwnPropertyDescriptor(value, keys[at]) } catch { continue }
      if (descriptor !== undefined && 'value' in descriptor) look(descriptor.value, where, depth + 1);
    }
  };
  const record = (where, self, values) => {
    if (busy) return;
    busy = true;
    recorded++;
    seen = new OwnSet();
    wheres[where] = 1;
    try { look(self, where, 0); for (let at = 0; at < values.length; at++) look(values[at], where, 0); } finally { busy = false }
  };

  const define = (owner, name, members) => { try { defineProperty(owner, name, { __proto__: null, configurable: true, ...members }) } catch {} };
  const wrapped = (original, where) => new OwnProxy(original, {
    __proto__: null,
    apply(target, self, values) { record(where, self, values); const result = apply(target, self, values); record(where, result, []); return result; },
    construct(target, values, made) { record(where, undefined, values); const result = construct(target, values, made); record(where, result, []); return result; },
  });
  const replaceAll = (owner, label, keep) => {
    const keys = ownKeys(owner);
    for (let at = 0; at < keys.length; at++) {
      const name = keys[at], where = label + '.' + text(name), descriptor = getOwnPropertyDescriptor(owner, name);
      if (!descriptor.configurable || keep(name)) continue;
      if ('value' in descriptor && typeof descriptor.value === 'function' && name !== 'constructor') define(owner, name, { value: wrapped(descriptor.value, where), writable: true });
      else if (descriptor.get !== undefined) define(owner, name, { get: wrapped(descriptor.get, where), set: descriptor.set && wrapped(descriptor.set, where) });
      else if (name === 'constructor') define(owner, name, { get() { record(where, this, []); return descriptor.value }, set(value) { record(where, this, [value]); define(this, name, { value, writable: true }) } });
    }
  };
  const trap = (owner, name, label) => define(owner, name, {
    get() { record('get ' + label, this, []); return undefined },
    set(value) { record('set ' + label, this, [value]); define(this, name, { value, writable: true, enumerable: true }) },
  });

  const asyncGenerator = getPrototypeOf(getPrototypeOf((async function* () {}).prototype));
  const prototypes = { Array, Function, Promise, Map, Set, WeakMap, WeakSet, String, Number, Boolean, Symbol, RegExp, ArrayBuffer, DataView, TextEncoder, TextDecoder, Error, Uint8Array, Event, EventTarget };
  for (const name of ownKeys(prototypes)) replaceAll(prototypes[name].prototype, name, () => false);
  replaceAll(typed, 'TypedArray', () => false);
  for (const [label, owner] of [['ArrayIterator', getPrototypeOf([][Symbol.iterator]())], ['MapIterator', getPrototypeOf(new Map()[Symbol.iterator]())], ['Generator', getPrototypeOf(getPrototypeOf((function* () {}).prototype))], ['AsyncGenerator', asyncGenerator]]) replaceAll(owner, label, () => false);
  replaceAll(Object.prototype, 'Object.prototype', (name) => name === '__proto__');
  for (const [label, owner] of [['Object', Object], ['Reflect', Reflect], ['JSON', JSON], ['Promise', Promise], ['Array', Array], ['ArrayBuffer', ArrayBuffer], ['TypedArray', getPrototypeOf(OwnBytes)], ['String', String], ['Number', Number], ['Math', Math], ['Symbol', Symbol], ['Deno', Deno]]) replaceAll(owner, label, () => false);
  for (const owner of [getPrototypeOf(OwnBytes), ArrayBuffer, Promise, Array, Map, Set, RegExp]) {
    define(owner, Symbol.species, { get() { record('species', this, []); return new OwnProxy(this, { __proto__: null, construct(target, values, made) { record('species', target, values); return construct(target, values, target) } }) } });
  }
  for (let index = 0; index <= 50; index++) { trap(Array.prototype, text(index), 'Array index'); trap(Object.prototype, text(index), 'index'); trap(typed, text(index), 'bytes index'); }
  for (const name of ['then', 'toJSON', 'next', 'first', 'last', 'bytes', 'memory', 'buffer', 'frame', 'key', 'message', 'text', 'stream', 'at', 'length', 'byteLength', 'byteOffset', 'resolve', 'reject', 'id', 'method', 'args', 'error', 'code', 'ok', 't', 'rid', 'waiting', 'sending', 'data', 'result', Symbol.toPrimitive, Symbol.iterator, Symbol.asyncIterator, Symbol.isConcatSpreadable, Symbol.species, Symbol.toStringTag]) trap(Object.prototype, name, 'Object ' + text(name));
  for (const name of ['buffer', 'byteLength', 'byteOffset', 'length']) {
    const original = getOwnPropertyDescriptor(OwnBytes.prototype, name);
    if (original === undefined) define(OwnBytes.prototype, name, { get() { record('Uint8Array ' + name, this, []); return apply(originals[name], this, []) } });
  }
  for (const name of ['Uint8Array', 'ArrayBuffer', 'DataView', 'TextEncoder', 'TextDecoder', 'Promise', 'Error', 'Object', 'Array']) define(globalThis, name, { value: wrapped(globalThis[name], 'new ' + name), writable: true });
  busy = false;

  for (let round = 0; round < 3; round++) {
    console.log('bait', round);
    console.error({ bait: round });
    const calls = [host.echo({ round }), host.echo('x'.repeat(300000)), host.echo(['y'])];
    for (let at = 0; at < 3; at++) await calls[at];
    try { await host.fail() } catch {}
  }
  busy = true;
  return { recorded, strangers, found, wheres: ownKeys(wheres) };
}`;
