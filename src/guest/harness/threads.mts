/** What threads and the clocks made of them need, taken from the guest's realm before there is a guest. */
const { apply, defineProperty, deleteProperty, getOwnPropertyDescriptor, preventExtensions, set, setPrototypeOf } = Reflect;
const OwnError = Error;
const OwnTypeError = TypeError;
const { captureStackTrace } = Error;
const { includes } = String.prototype;
const lengthOf = getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength')?.get as () => number;

interface WebAssemblyScope {
  WebAssembly: { Memory: { prototype: object } };
}

export function removeThreads(): void {
  for (const name of ['Worker', 'SharedWorker', 'SharedArrayBuffer', 'Atomics']) deleteProperty(globalThis, name);
  hideSharedMemory((globalThis as unknown as WebAssemblyScope).WebAssembly.Memory.prototype);
}

/** A memory of WebAssembly can be shared, but all that leads from it to its buffer is here. */
function hideSharedMemory(memory: object): void {
  for (const name of ['buffer', 'toFixedLengthBuffer', 'toResizableBuffer']) {
    const { get, value } = getOwnPropertyDescriptor(memory, name) ?? {};
    const original = (get ?? value) as (() => object) | undefined;
    if (original === undefined) continue;
    const unshared = function (this: object): object {
      return unlessShared(apply(original, this, []));
    };
    defineProperty(memory, name, get === undefined ? { value: unshared } : { get: unshared });
  }
}

function unlessShared(buffer: object): object {
  try {
    apply(lengthOf, buffer, []);
  } catch {
    throw new OwnTypeError('shared memory is not available');
  }
  return buffer;
}

/** Makes a class of workers one that cannot be constructed, for good: its constructor calls what it extends first. */
export function closeWorkers(Worker: object): void {
  setPrototypeOf(Worker, function refused() {
    throw new OwnError('workers are not available');
  });
  preventExtensions(Worker);
}

/**
 * A runtime whose own modules look for Atomics when they are loaded, which may be at any time, finds something in
 * its place. Whoever else looks finds undefined.
 */
export function standInForAtomics(reader: string): void {
  const standIn = { __proto__: null, wait: () => 'timed-out' };
  const get = (): object | undefined => (apply(includes, callerOf(get), [reader]) ? standIn : undefined);
  const replace = (value: unknown): void => void defineProperty(globalThis, 'Atomics', { __proto__: null, value, writable: true, configurable: true } as PropertyDescriptor);
  defineProperty(globalThis, 'Atomics', { get, set: replace, configurable: true, enumerable: false });
}

/** The innermost frame below a function, as text. A guest that has a say in how stacks look can deceive it. */
function callerOf(callee: () => unknown): string {
  const limit = OwnError.stackTraceLimit;
  set(OwnError, 'stackTraceLimit', 1);
  // Whatever shows stacks for the guest expects an error.
  const place = new OwnError('here');
  captureStackTrace(place, callee);
  set(OwnError, 'stackTraceLimit', limit);
  return `${place.stack}`;
}
