import { fail, prepare } from './realm.mjs';

// What a worker of Deno has, as far as it is needed here.
interface WorkerScope {
  Deno: Record<symbol, unknown> & {
    inspect(value: unknown): string;
    internal: symbol;
  };
  postMessage(message: string): void;
  addEventListener(type: string, listener: (event: { data: string; reason: unknown; error: unknown; preventDefault(): void }) => void): void;
}

const scope = globalThis as unknown as WorkerScope;
const { inspect } = scope.Deno;
const internals = scope.Deno[scope.Deno.internal] as { inspectArgs?(values: unknown[]): string } | undefined;
const inspectArgs = internals?.inspectArgs;
const post = scope.postMessage.bind(globalThis);
const encode = encodeURIComponent;
const mayUseNode = /\b(?:import|require|process|Buffer|global|(?:set|clear)(?:Timeout|Interval|Immediate))\b/;

const format = inspectArgs ?? ((values: unknown[]) => values.map((value) => (typeof value === 'string' ? value : inspect(value))).join(' '));

const receive = prepare({
  send: post,
  format,
  async prepareFor(source) {
    // Deno's own Node modules, timers among them, look for Atomics when the first of them is loaded, and never again.
    // Loading one takes longer than most functions do.
    if (mayUseNode.test(source)) await import('node:events');
    // What is left of the channel here: the harness holds the only reference.
    for (const name of ['postMessage', 'close', 'onmessage', 'onmessageerror']) Reflect.deleteProperty(scope, name);
  },
  load: (source) => import(`data:application/typescript,${encode(source)}`) as Promise<object>,
});
scope.addEventListener('message', ({ data }) => receive(data));
scope.addEventListener('unhandledrejection', (event) => {
  event.preventDefault();
  fail(post, event.reason);
});
scope.addEventListener('error', (event) => {
  event.preventDefault();
  fail(post, event.error);
});
post('{"t":"ready"}');
