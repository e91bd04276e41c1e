/**
 * The guest's side, in the guest's own realm: what runs there before the function does, and around it. Nothing in here is
 * secret or trusted. It takes hold of every built-in that it needs before guest code can replace one.
 */

/** The runtime's part. */
export interface Surroundings {
  /** Hands one message on. The text is JSON. */
  send(text: string): void;
  /** Values as the runtime's console would print them. */
  format(values: unknown[]): string;
  /** Modules of the runtime that look for shared memory when they are loaded, and that this source may use. */
  loadBefore(source: string): (() => Promise<unknown>) | null;
  /** Evaluates a module; resolves with its namespace. */
  load(source: string): Promise<object>;
}

interface Start {
  t: 'start';
  source: string;
  input?: unknown;
  secrets: Record<string, string>;
  bindings: 'none' | 'broker' | string[];
}

interface Reply {
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

const MAX_LINES = 1000;
const MAX_CHARACTERS = 4000;
const LEVELS = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir', 'table', 'group', 'groupCollapsed'] as const;
const SILENT = ['assert', 'clear', 'count', 'countReset', 'dirxml', 'groupEnd', 'time', 'timeEnd', 'timeLog', 'timeStamp', 'profile', 'profileEnd'];

const { apply, defineProperty, deleteProperty } = Reflect;
const { create, freeze } = Object;
const { parse, stringify } = JSON;
const text = String;
const slice = String.prototype.slice;
const OwnPromise = Promise;
const OwnError = Error;

export interface Harness {
  /** Takes the host's messages. */
  receive(message: string): void;
  /** Goes through all that a run does, with a function of no consequence. */
  rehearse(): Promise<void>;
}

/** Prepares the realm. */
export function prepare(surroundings: Surroundings): Harness {
  const { send } = surroundings;
  const shared = removeThreads();
  replaceConsole(surroundings);
  const calls = new Calls(send);
  let started = false;
  return {
    receive(message) {
      const parsed = parse(message) as Start | Reply;
      if (parsed.t === 'reply') return calls.settle(parsed);
      if (started) return;
      started = true;
      offerBindings(parsed, calls);
      setGlobal('__secrets', freeze(parsed.secrets));
      void run(parsed, surroundings, shared);
    },
    async rehearse() {
      const start: Start = { t: 'start', source: 'export default (input) => setTimeout(() => {}, 0) && input;', input: {}, secrets: {}, bindings: 'none' };
      await run(start, { ...surroundings, send: () => undefined }, shared);
      surroundings.format([start]);
    },
  };
}

/** Reports what ended the run outside the function's own promise. */
export function fail(send: Surroundings['send'], error: unknown): void {
  send(`{"t":"failure","error":${stringify(messageOf(error))}}`);
}

async function run({ source, input }: Start, { send, load, loadBefore }: Surroundings, shared: SharedMemory): Promise<void> {
  try {
    const before = loadBefore(source);
    if (before !== null) {
      // No guest code runs before they are gone again.
      restore(shared);
      await before();
      remove(shared);
    }
    const { default: entry } = (await load(source)) as { default?: unknown };
    if (typeof entry !== 'function') throw new OwnError('the source must `export default` a function');
    const output: unknown = await apply(entry, undefined, [input]);
    send(`{"t":"result"${outputMember(output)}}`);
  } catch (error) {
    fail(send, error);
  }
}

function outputMember(output: unknown): string {
  if (output === undefined) return '';
  let json: string | undefined;
  try {
    json = stringify(output);
  } catch (error) {
    throw new OwnError(`the result is not JSON: ${messageOf(error)}`);
  }
  if (json === undefined) throw new OwnError(`the result is not JSON: a ${typeof output}`);
  return `,"output":${json}`;
}

function messageOf(error: unknown): string {
  try {
    if (typeof error === 'object' && error !== null) {
      const { message, name } = error as { message?: unknown; name?: unknown };
      if (typeof message === 'string' && message !== '') return message;
      if (typeof name === 'string' && name !== '') return name;
    }
    return text(error);
  } catch {
    return 'an error that cannot be shown';
  }
}

type SharedMemory = Record<string, unknown>;

/** Takes away what threads and their timing need. Gives back what shares memory, for the runtime's own use. */
function removeThreads(): SharedMemory {
  const scope = globalThis as unknown as SharedMemory;
  const shared = { SharedArrayBuffer: scope['SharedArrayBuffer'], Atomics: scope['Atomics'] };
  // A buffer of shared WebAssembly memory would lead back to it.
  if (typeof SharedArrayBuffer === 'function') deleteProperty(SharedArrayBuffer.prototype, 'constructor');
  deleteProperty(globalThis, 'Worker');
  deleteProperty(globalThis, 'SharedWorker');
  remove(shared);
  return shared;
}

function remove(shared: SharedMemory): void {
  for (const name in shared) deleteProperty(globalThis, name);
}

function restore(shared: SharedMemory): void {
  for (const name in shared) setGlobal(name, shared[name]);
}

function replaceConsole({ send, format }: Surroundings): void {
  let lines = 0;
  const target = console as unknown as Record<string, unknown>;
  const write = (level: string, values: unknown[]): void => {
    if (lines >= MAX_LINES) return;
    lines++;
    let line: string;
    try {
      line = format(values);
    } catch {
      line = 'a value that cannot be shown';
    }
    send(`{"t":"log","text":${stringify(apply(slice, `${level}: ${line}`, [0, MAX_CHARACTERS]))}}`);
  };
  for (const level of LEVELS) target[level] = (...values: unknown[]) => write(level, values);
  for (const name of SILENT) target[name] = () => undefined;
  target['assert'] = (condition: unknown, ...values: unknown[]) => {
    if (condition !== true && !condition) write('error', ['Assertion failed', ...values]);
  };
}

class Calls {
  readonly #send: Surroundings['send'];
  // No Map: its methods could be replaced.
  readonly #pending = create(null) as Record<number, Pending | undefined>;
  #next = 1;

  constructor(send: Surroundings['send']) {
    this.#send = send;
  }

  call(method: string, args: unknown): Promise<unknown> {
    return new OwnPromise((resolve, reject) => {
      const id = this.#next++;
      const json = stringify(args);
      this.#pending[id] = { resolve, reject };
      this.#send(`{"t":"call","id":${id},"method":${stringify(method)}${json === undefined ? '' : `,"args":${json}`}}`);
    });
  }

  settle({ id, ok, value, error }: Reply): void {
    const pending = this.#pending[id];
    if (pending === undefined) return;
    deleteProperty(this.#pending, id);
    if (ok) return pending.resolve(value);
    const rejection = new OwnError(error?.message ?? 'the call failed');
    if (error !== undefined && error.code !== '') defineProperty(rejection, 'code', { value: error.code, enumerable: true });
    pending.reject(rejection);
  }
}

function offerBindings({ bindings }: Start, calls: Calls): void {
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

function setGlobal(name: string, value: unknown): void {
  defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}
