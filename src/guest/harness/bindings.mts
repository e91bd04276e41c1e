/** What a guest may call, in its own realm: the host's functions by their names, or a broker's surface and its fetch. */
const { defineProperty, deleteProperty } = Reflect;
const { create, freeze } = Object;
const { stringify } = JSON;
const OwnPromise = Promise;
const OwnError = Error;
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);

/** Of one message, as the host takes it. */
const MAX_BYTES = 2 * 1024 * 1024;

export interface Reply {
  t: 'reply';
  id: number;
  ok: boolean;
  value?: unknown;
  error?: { code: string; message: string };
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export type Bindings = 'none' | 'broker' | string[];

export class Calls {
  readonly #send: (text: string) => void;
  // No Map: its methods could be replaced.
  readonly #pending = create(null) as Record<number, Pending | undefined>;
  #next = 1;

  constructor(send: (text: string) => void) {
    this.#send = send;
  }

  call(method: string, args: unknown): Promise<unknown> {
    return new OwnPromise((resolve, reject) => {
      const id = this.#next++;
      const json = stringify(args);
      const message = `{"t":"call","id":${id},"method":${stringify(method)}${json === undefined ? '' : `,"args":${json}`}}`;
      if (isTooLong(message)) return reject(failure('too_large', `a call of ${method} has more than ${MAX_BYTES} bytes`));
      this.#pending[id] = { resolve, reject };
      this.#send(message);
    });
  }

  settle({ id, ok, value, error }: Reply): void {
    const pending = this.#pending[id];
    if (pending === undefined) return;
    deleteProperty(this.#pending, id);
    if (ok) return pending.resolve(value);
    pending.reject(failure(error?.code ?? '', error?.message ?? 'the call failed'));
  }
}

function failure(code: string, message: string): Error {
  const error = new OwnError(message);
  if (code !== '') defineProperty(error, 'code', { value: code, enumerable: true });
  return error;
}

function isTooLong(message: string): boolean {
  // A UTF-16 unit is at most three bytes of UTF-8.
  return 3 * message.length > MAX_BYTES && encode(message).length > MAX_BYTES;
}

/** Makes the globals of these bindings. */
export function offerBindings(bindings: Bindings, calls: Calls): void {
  if (bindings === 'none') return;
  if (bindings !== 'broker') return setGlobal('host', functionsOf(bindings, (name) => name, calls));
  setGlobal('questpie', questpie(calls));
  setGlobal('fetch', relayedFetch(calls));
}

type Call = (args?: unknown) => Promise<unknown>;

function functionsOf(names: readonly string[], methodOf: (name: string) => string, calls: Calls): Record<string, Call> {
  const functions = create(null) as Record<string, Call>;
  for (let index = 0; index < names.length; index++) {
    const name = names[index] as string;
    functions[name] = (args) => calls.call(methodOf(name), args);
  }
  return freeze(functions);
}

const RECORD_OPERATIONS = ['find', 'findOne', 'create', 'update', 'delete'];

function questpie(calls: Calls): object {
  const noArguments = (call: Call): Call => (args = {}) => call(args);
  const records = (of: (name: string) => Record<string, Call>): object =>
    new Proxy(create(null) as object, { get: (_, name) => (typeof name === 'string' && name !== 'then' ? of(name) : undefined) });
  const collection = (name: string): Record<string, Call> => {
    const operations = functionsOf(RECORD_OPERATIONS, (operation) => `collections.${name}.${operation}`, calls);
    return mapped(operations, noArguments);
  };
  const store = (name: string): Record<string, Call> => {
    const documents = collection('document_store');
    return mapped(documents, (call, operation) => (args = {}) => {
      const given = args as Record<string, unknown>;
      if (operation === 'create') return call({ ...given, store: name });
      const where = given['where'];
      return call({ ...given, where: { ...(typeof where === 'object' ? where : null), store: name } });
    });
  };
  return freeze({
    collections: records(collection),
    store: records(store),
    files: mapped(functionsOf(['read', 'write', 'list'], (operation) => `files.${operation}`, calls), noArguments),
    tools: freeze({
      list: () => calls.call('tools.list', {}),
      call: (name: string, args: unknown = {}) => calls.call('tools.call', { name, arguments: args }),
    }),
  });
}

function mapped(calls: Record<string, Call>, change: (call: Call, name: string) => Call): Record<string, Call> {
  const changed = create(null) as Record<string, Call>;
  for (const name in calls) changed[name] = change(calls[name] as Call, name);
  return freeze(changed);
}

interface RelayedResponse {
  status: number;
  statusText?: string;
  headers?: Record<string, string>;
  bodyBase64?: string;
}

function relayedFetch(calls: Calls): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer());
    const value = (await calls.call('http.fetch', {
      url: request.url,
      method: request.method,
      headers: Object.fromEntries(request.headers),
      ...(body === null || body.length === 0 ? {} : { bodyBase64: toBase64(body) }),
    })) as RelayedResponse;
    const { status, statusText = '', headers = {}, bodyBase64 = '' } = value;
    const empty = status === 101 || status === 204 || status === 205 || status === 304;
    return new Response(empty ? null : fromBase64(bodyBase64), { status, statusText, headers });
  };
}

function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(binary);
}

function fromBase64(base64: string): Uint8Array {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

export function setGlobal(name: string, value: unknown): void {
  defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}
