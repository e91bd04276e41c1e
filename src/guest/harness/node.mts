/**
 * Both sides in Node: one process, one realm. The guest may find the socket and write on it; all it can change by that is
 * its own answer. What the host takes from here it checks.
 */
import { createConnection } from 'node:net';
import { formatWithOptions } from 'node:util';

import { fail, prepare } from './realm.mjs';

const HEADER_BYTES = 4;
const MAX_FRAME_BYTES = 2 * 1024 * 1024;
const socket = createConnection({ host: '127.0.0.1', port: Number(process.argv[2]), noDelay: true });
const { apply } = Reflect;
const write = socket.write.bind(socket);
const { from, byteLength, allocUnsafe } = Buffer;
const { writeUInt32LE, utf8Write, toString } = Buffer.prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
void from;
const encode = encodeURIComponent;

const receive = prepare({
  send,
  format: (values) => formatWithOptions({}, ...values),
  load: (source) => import(`data:text/javascript,${encode(source)}`) as Promise<object>,
});

process.argv.splice(1);
process.on('uncaughtException', (error) => fail(send, error));
process.on('unhandledRejection', (error) => fail(send, error));

let held = Buffer.alloc(0);
socket.on('error', () => process.exit(0));
socket.on('close', () => process.exit(0));
socket.on('data', (chunk) => {
  held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
  while (held.length >= HEADER_BYTES) {
    const size = HEADER_BYTES + held.readUInt32LE(0);
    if (held.length < size) return;
    const message = held.toString('utf8', HEADER_BYTES, size);
    held = held.subarray(size);
    receive(message);
  }
});
send('{"t":"ready"}');

function send(message: string): void {
  let text = message;
  let length = byteLength(text);
  if (length > MAX_FRAME_BYTES) {
    text = `{"t":"failure","error":"a message of ${length} bytes, where ${MAX_FRAME_BYTES} are allowed"}`;
    length = byteLength(text);
  }
  const frame = allocUnsafe(HEADER_BYTES + length);
  apply(writeUInt32LE as never, frame, [length, 0]);
  apply(utf8Write as never, frame, [text, HEADER_BYTES, length]);
  write(frame);
}
void toString;
