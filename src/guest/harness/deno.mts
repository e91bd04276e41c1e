/**
 * The trusted side in Deno: this isolate holds the channel to the host, the guest lives in a worker isolate of its own
 * without permissions. All that the guest can reach of the channel is `postMessage`: each text becomes one frame, whatever
 * is in it, and the host checks what it says.
 */

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

const HEADER_BYTES = 4;
const MAX_FRAME_BYTES = 2 * 1024 * 1024;
const { Deno, Worker } = globalThis as unknown as Scope;
const [port, permissions] = Deno.args;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

const connecting = Deno.connect({ hostname: '127.0.0.1', port: Number(port) });
const worker = new Worker(new URL('./deno-worker.mjs', import.meta.url).href, {
  type: 'module',
  name: 'guest',
  deno: { permissions: JSON.parse(permissions ?? '"none"') as unknown },
});
let sending: Promise<unknown> = connecting;
worker.onmessage = ({ data }) => {
  if (typeof data === 'string') send(data);
};
worker.onerror = (event) => {
  event.preventDefault();
  send(JSON.stringify({ t: 'failure', error: event.message.replace(/^Uncaught (\(in promise\) )?/, '') }));
};
const connection = await connecting;
// A guest that ends its own isolate leaves nothing that keeps this process: the host sees it exit.
connection.unref();
void receive(connection);

function send(text: string): void {
  const bytes = encoder.encode(text);
  const frame = new Uint8Array(HEADER_BYTES + bytes.length);
  if (bytes.length > MAX_FRAME_BYTES) {
    return send(JSON.stringify({ t: 'failure', error: `a message of ${bytes.length} bytes, where ${MAX_FRAME_BYTES} are allowed` }));
  }
  new DataView(frame.buffer).setUint32(0, bytes.length, true);
  frame.set(bytes, HEADER_BYTES);
  sending = sending.then(() => write(frame));
}

async function write(frame: Uint8Array): Promise<void> {
  for (let at = 0; at < frame.length; ) at += await connection.write(frame.subarray(at));
}

async function receive(from: Connection): Promise<void> {
  let held = new Uint8Array(64 * 1024);
  let length = 0;
  for (;;) {
    const count = await from.read(held.subarray(length));
    if (count === null) return Deno.exit(0);
    length += count;
    let at = 0;
    while (length - at >= HEADER_BYTES) {
      const size = HEADER_BYTES + new DataView(held.buffer).getUint32(at, true);
      if (length - at < size) {
        if (size > held.length - at) held = grown(held, size + length);
        break;
      }
      worker.postMessage(decoder.decode(held.subarray(at + HEADER_BYTES, at + size)));
      at += size;
    }
    held.copyWithin(0, at, length);
    length -= at;
    if (length === held.length) held = grown(held, 2 * length);
  }
}

function grown(bytes: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(size);
  larger.set(bytes);
  return larger;
}
