/** What runs in a sandbox with Deno: opens the channel, gives up every right to it but one reference, and waits for the guest. */
import { bare, bareMemory, Splitter } from './frames.mjs';
import type { Frame } from './frames.mjs';
import { fail, prepare } from './realm.mjs';
import { standInForAtomics } from './threads.mjs';

// What Deno has, as far as it is needed here: its own types would need Deno to check them.
interface Connection {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  setNoDelay(): void;
}

interface DenoScope {
  args: string[];
  connect(to: { hostname: string; port: number }): Promise<Connection>;
  stdin: { readSync(into: Uint8Array): number | null };
  exit(code: number): never;
  inspect(value: unknown): string;
  internal: symbol;
  permissions: { revokeSync(permission: { name: 'net'; host: string }): unknown };
  [internal: symbol]: { inspectArgs?(values: unknown[]): string } | undefined;
}

interface Stray {
  reason?: unknown;
  error?: unknown;
  preventDefault(): void;
}

const scope = globalThis as unknown as { Deno: DenoScope; addEventListener(type: string, listener: (event: Stray) => void): void };
const { Deno } = scope;
const { apply, defineProperty, deleteProperty } = Reflect;
const { fill } = Uint8Array.prototype;
const OwnError = Error;
const { exit, inspect } = Deno;
const inspectArgs = Deno[Deno.internal]?.inspectArgs;
const format = inspectArgs ?? ((values: unknown[]) => values.map((value) => (typeof value === 'string' ? value : inspect(value))).join(' '));

const port = Number(Deno.args[0]);
const rehearses = Deno.args.includes('rehearse');
const rehearsesNode = Deno.args.includes('rehearse-node');
const OwnBlob = Blob;
const { createObjectURL } = URL;
// Not by a data: URL: that would put the source into every message that names the module.
const load = (source: string): Promise<object> => import(createObjectURL(new OwnBlob([source], { type: 'application/typescript' }))) as Promise<object>;
// What follows goes on meanwhile.
const connecting = Deno.connect({ hostname: '127.0.0.1', port });
// The way to every resource by its number.
deleteProperty(Deno, Deno.internal);

// Deno's own operations go through this one: a guest that replaces it would only cut itself off.
const { call } = Function.prototype;
defineProperty(Function.prototype, 'call', {
  configurable: false,
  get: () => call,
  set(this: unknown, value: unknown) {
    if (this !== Function.prototype) defineProperty(this as object, 'call', { value, writable: true, enumerable: true, configurable: true });
  },
});

let write: Connection['write'];
let frame: (message: string) => Frame;
let first: Frame | null = null;
let last: Frame | null = null;
let sending = false;

const send = (message: string): void => {
  const added = frame(message);
  if (last === null) first = added;
  else last.next = added;
  last = added;
  if (!sending) void drain();
};

const ready = (): void => send('{"t":"ready"}');

async function rehearseAll(): Promise<void> {
  // What most of Node's modules are built on.
  if (rehearsesNode) await import('node:events');
  await rehearse(rehearsesNode);
}

function wholeInput(): Uint8Array {
  const bytes = new Uint8Array(1024);
  let length = 0;
  for (let count = 1; count > 0; length += count) count = Deno.stdin.readSync(bytes.subarray(length)) ?? 0;
  return bytes.subarray(0, length);
}

async function drain(): Promise<void> {
  sending = true;
  try {
    for (; first !== null; first = first.next) {
      const { memory, length } = first;
      for (let at = 0; at < length; ) at += counted(await write(bare(memory, at, length - at)), length - at);
    }
    last = null;
  } catch {
    // The stack of whoever sends was full, before anything was written: the next message takes this one along.
  }
  sending = false;
}

/** How many bytes were moved. A guest that replaces what promises are built on can say what it likes here. */
function counted(count: unknown, most: number): number {
  if (typeof count === 'number' && count >>> 0 === count && count > 0 && count <= most) return count;
  exit(0);
  // Not even Deno's exit is sure to end it: a listener of the guest's hears of it and can throw.
  throw new OwnError('the channel is closed');
}

const { receive, rehearse } = prepare({
  send,
  format,
  load,
});
// The first of Deno's Node modules to be loaded (timers are of them) takes Atomics.wait; none looks for it later.
standInForAtomics('ext:deno_node/');
const stray = (event: Stray): void => {
  event.preventDefault();
  fail(send, event.reason ?? event.error);
};
scope.addEventListener('unhandledrejection', stray);
scope.addEventListener('error', stray);

const connection = await connecting;
const read = connection.read.bind(connection);
write = connection.write.bind(connection);
if (Deno.args.includes('password')) await write(wholeInput());
// A message is not to wait until the one before it is acknowledged.
connection.setNoDelay();
Deno.permissions.revokeSync({ name: 'net', host: `127.0.0.1:${port}` });

const splitter = new Splitter({
  onOpen(encodeWithKey) {
    frame = encodeWithKey;
    if (rehearses || rehearsesNode) void rehearseAll().then(ready);
    else ready();
  },
  onMessage: receive,
});
const CHUNK_BYTES = 64 * 1024;
const memory = bareMemory(CHUNK_BYTES);
const chunk = bare(memory, 0, CHUNK_BYTES);
for (;;) {
  const count = counted(await read(chunk), CHUNK_BYTES);
  splitter.push(memory, 0, count);
  apply(fill, chunk, [0]);
}
