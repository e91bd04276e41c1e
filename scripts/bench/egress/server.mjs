// The server of the bench, in a process of its own: answers "ok", sends /bytes/N, and takes whatever is sent to it. Says its port.
import { createServer } from 'node:http';

const chunk = Buffer.alloc(1 << 20);

async function send(response, size) {
  for (let left = size; left > 0; left -= chunk.length) {
    if (!response.write(left < chunk.length ? chunk.subarray(0, left) : chunk)) await new Promise((resolve) => response.once('drain', resolve));
  }
  response.end();
}

const server = createServer((request, response) => {
  const size = /^\/bytes\/(\d+)$/.exec(request.url)?.[1];
  if (size !== undefined) return void send(response, Number(size));
  request.resume().on('end', () => response.end('ok'));
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume().on('end', () => process.exit());
