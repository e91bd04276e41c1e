// The servers of the small Internet, in a network namespace of their own: DNS, HTTP, HTTPS, WebSocket, raw TCP, redis.
// First line in: { addresses, servers: { key, cert } }; then { to: 'servers', id, task }. Says "up" when all listen.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

import { startDns } from './dns.mjs';

const ip = (...words) => execFileSync('ip', words, { stdio: ['ignore', 'inherit', 'inherit'] });
const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const counts = {};

/** Listens, and counts connections by where they came to. */
async function listen(server, host, port) {
  server.on('connection', (socket) => {
    socket.on('error', () => {});
    const key = `${host}:${port}`;
    counts[key] = (counts[key] ?? 0) + 1;
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
}

function answer(request, response) {
  const hash = createHash('sha256');
  let bytes = 0;
  request.on('data', (chunk) => {
    hash.update(chunk);
    bytes += chunk.length;
  });
  request.on('end', () => {
    if (request.url === '/module.ts') return response.setHeader('content-type', 'application/typescript').end('export const word: string = "imported";\n');
    const size = /^\/bytes\/(\d+)$/.exec(request.url)?.[1];
    if (size !== undefined) return void stream(response, Number(size));
    response.end(JSON.stringify({ host: request.headers.host, path: request.url, tls: request.socket.servername ?? null, bytes, sha256: hash.digest('hex') }));
  });
}

/** Zeros: what they hash to is known to both sides. */
async function stream(response, size) {
  const chunk = Buffer.alloc(65536);
  for (let left = size; left > 0; left -= chunk.length) {
    if (!response.write(left < chunk.length ? chunk.subarray(0, left) : chunk)) await new Promise((resolve) => response.once('drain', resolve));
    if (response.destroyed) return;
  }
  response.end();
}

/** The opening handshake of RFC 6455, then echoes of frames of up to 125 bytes. */
function webSocket(request, socket) {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.on('error', () => {});
  socket.on('data', (frame) => {
    const length = frame[1] & 0x7f;
    const mask = frame.subarray(2, 6);
    const payload = Buffer.from(frame.subarray(6, 6 + length).map((byte, index) => byte ^ mask[index % 4]));
    if ((frame[0] & 0xf) === 8) return socket.end(Buffer.from([0x88, 0]));
    socket.write(Buffer.concat([Buffer.from([0x81, payload.length]), payload]));
  });
}

const raw = {
  // Speaks first, as SMTP and MySQL do.
  7001: (socket) => socket.end('220 welcome\n'),
  // Echoes until the other side has said all, and says so itself at the end: half-close both ways.
  7002: (socket) => socket.on('data', (chunk) => socket.write(chunk)).on('end', () => socket.end('|end')),
  // Resets in the middle.
  7003: (socket) => socket.write('part', () => setTimeout(() => socket.resetAndDestroy(), 100)),
  // Takes everything, and tells how much it was once the other side is done.
  7004: (socket) => {
    let bytes = 0;
    socket.on('data', (chunk) => (bytes += chunk.length)).on('end', () => socket.end(String(bytes)));
  },
  // Sends without end, and counts what the other side took.
  7005: (socket) => {
    const chunk = Buffer.alloc(65536);
    const more = () => {
      while (!socket.destroyed && socket.write(chunk)) counts.endless = (counts.endless ?? 0) + chunk.length;
    };
    socket.on('drain', more);
    more();
  },
  // Says nothing at all.
  7006: () => {},
};

let questions = [];
let redis;

async function setUp({ addresses, servers: { key, cert } }) {
  ip('link', 'set', 'lo', 'up');
  for (const address of addresses) ip('addr', 'add', address, 'dev', 'lo', ...(address.includes(':') ? ['nodad'] : []));
  ip('addr', 'add', '10.77.0.2/24', 'dev', 'net0');
  ip('addr', 'add', 'fd77::2/64', 'dev', 'net0', 'nodad');
  ip('link', 'set', 'net0', 'up');
  questions = await startDns('93.184.0.53');
  const web = ['93.184.1.1', '93.184.1.2', '2600:beef::1', '10.66.0.5', '169.254.169.254'];
  for (const host of web) {
    await listen(createHttp(answer).on('upgrade', webSocket), host, 80);
    await listen(createHttps({ key, cert }, answer).on('upgrade', webSocket), host, 443);
    await listen(createHttp(answer), host, 8080);
  }
  for (const [port, handler] of Object.entries(raw)) await listen(createServer({ allowHalfOpen: true }, handler), '93.184.1.1', Number(port));
  redis = spawn('redis-server', ['--bind', '93.184.1.3', '--port', '6379', '--save', '', '--protected-mode', 'no', '--daemonize', 'no', '--dir', '/'], { stdio: ['ignore', 'pipe', 'inherit'] });
  redis.on('error', (error) => console.error(`lab: redis-server: ${error.message}`));
  await new Promise((resolve) => {
    redis.stdout.on('data', (chunk) => /[Rr]eady to accept/.test(chunk) && resolve());
    redis.on('error', resolve);
    redis.on('exit', resolve);
  });
  tell('up');
}

let isUp = false;
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const message = JSON.parse(line);
    if (!isUp) {
      isUp = true;
      return void setUp(message);
    }
    tell({ id: message.id, counts, questions });
  })
  .on('close', () => {
    redis?.kill('SIGKILL');
    process.exit();
  });
tell('here');
