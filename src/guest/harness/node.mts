/** What runs in a sandbox with Node: opens the channel and waits for the guest. A guest that gets at the channel all the same (Node hides little) can change its own answer by it. */
import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { formatWithOptions } from 'node:util';

import { Splitter } from './frames.mjs';
import type { Frame } from './frames.mjs';
import { fail, prepare } from './realm.mjs';
import { closeWorkers } from './threads.mjs';

const socket = createConnection({ host: '127.0.0.1', port: Number(process.argv[2]), noDelay: true });
const write = socket.write.bind(socket) as (bytes: Uint8Array) => boolean;
const encode = encodeURIComponent;
const Bytes = Uint8Array;
const rehearses = process.argv.some((word) => word === 'rehearse' || word === 'rehearse-node');
if (process.argv.includes('password')) socket.write(readFileSync(0));
const load = (source: string): Promise<object> => import(`data:text/javascript,${encode(source)}`) as Promise<object>;
let frame: (message: string) => Frame;
const send = (message: string): void => {
  const { memory, length } = frame(message);
  write(new Bytes(memory, 0, length));
};
const ready = (): void => send('{"t":"ready"}');

const { receive, rehearse } = prepare({
  send,
  format: (values) => formatWithOptions({}, ...values),
  load,
});
const splitter = new Splitter({
  onOpen(encodeWithKey) {
    frame = encodeWithKey;
    if (rehearses) void rehearse(true).then(ready);
    else ready();
  },
  onMessage: receive,
});
// Loaded while the connection is made. Node's hooks for modules are such workers, too.
closeWorkers(process.getBuiltinModule('node:worker_threads').Worker);
process.argv.length = 1;
process.on('uncaughtException', (error) => fail(send, error));
process.on('unhandledRejection', (error) => fail(send, error));
const leave = process.exit.bind(process, 0);
socket.on('error', leave);
socket.on('close', leave);
socket.on('data', (chunk: Buffer) => splitter.push(chunk.buffer as ArrayBuffer, chunk.byteOffset, chunk.length));
