/**
 * Both sides in Node: one process, one realm. The guest may find the socket and write on it; all it can change by that is
 * its own answer. What the host takes from here it checks.
 */
import { createConnection } from 'node:net';
import { formatWithOptions } from 'node:util';

import { frameOf, Splitter } from './frames.mjs';
import { fail, prepare } from './realm.mjs';

const socket = createConnection({ host: '127.0.0.1', port: Number(process.argv[2]), noDelay: true });
const write = socket.write.bind(socket) as (bytes: Uint8Array) => boolean;
const send = (message: string): void => void write(frameOf(message));
const encode = encodeURIComponent;

const receive = prepare({
  send,
  format: (values) => formatWithOptions({}, ...values),
  prepareFor: () => Promise.resolve(),
  load: (source) => import(`data:text/javascript,${encode(source)}`) as Promise<object>,
});
const splitter = new Splitter(receive);
process.argv.length = 1;
process.on('uncaughtException', (error) => fail(send, error));
process.on('unhandledRejection', (error) => fail(send, error));
const leave = process.exit.bind(process, 0);
socket.on('error', leave);
socket.on('close', leave);
socket.on('data', (chunk: Buffer) => splitter.push(chunk));
send('{"t":"ready"}');
