/**
 * The trusted side in Deno: this isolate holds the channel to the host, the guest lives in a worker isolate of its own
 * without permissions. All that the guest can reach of the channel is `postMessage`: each text becomes one frame, whatever
 * is in it, and the host checks what it says.
 */
import { frameOf, Splitter } from './frames.mjs';

// What Deno has, as far as it is needed here: its own types would need Deno to check them.
interface Connection {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  unref(): void;
}

interface GuestWorker {
  postMessage(message: string): void;
  onmessage: (event: { data: unknown }) => void;
  onerror: (event: { message: string; preventDefault(): void }) => void;
}

interface Scope {
  Deno: {
    args: string[];
    connect(to: { hostname: string; port: number }): Promise<Connection>;
    exit(code: number): never;
  };
  Worker: new (url: string, options: object) => GuestWorker;
}

const { Deno, Worker } = globalThis as unknown as Scope;
const [port, permissions = ''] = Deno.args;

// The worker's start blocks this isolate; the connection is made meanwhile.
const connecting = Deno.connect({ hostname: '127.0.0.1', port: Number(port) });
const worker = new Worker(new URL('./deno-worker.mjs', import.meta.url).href, {
  type: 'module',
  name: 'guest',
  deno: { permissions: JSON.parse(permissions) as unknown },
});
let sending: Promise<unknown> = connecting;
worker.onmessage = ({ data }) => {
  if (typeof data === 'string' && isMessage(data)) send(data);
};
worker.onerror = (event) => {
  event.preventDefault();
  send(JSON.stringify({ t: 'failure', error: event.message.replace(/^Uncaught (\(in promise\) )?/, '') }));
};
const connection = await connecting;
// A guest that ends its own isolate leaves nothing that keeps this process: the host sees it exit.
connection.unref();
void receive(connection);

/** Junk must not cost a function its answer; what else is wrong with a message the host will say. */
function isMessage(text: string): boolean {
  try {
    const { t } = JSON.parse(text) as { t?: unknown };
    return typeof t === 'string';
  } catch {
    return false;
  }
}

function send(message: string): void {
  const frame = frameOf(message);
  sending = sending.then(() => writeAll(frame));
}

async function writeAll(frame: Uint8Array): Promise<void> {
  for (let at = 0; at < frame.length; ) at += await connection.write(frame.subarray(at));
}

async function receive(from: Connection): Promise<void> {
  const splitter = new Splitter((message) => worker.postMessage(message));
  const chunk = new Uint8Array(64 * 1024);
  for (;;) {
    const count = await from.read(chunk);
    if (count === null) return Deno.exit(0);
    splitter.push(chunk.subarray(0, count));
  }
}
