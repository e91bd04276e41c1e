import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `work` while no other process builds in `root`. The lock is an abstract unix socket: the kernel gives it back
 * however its holder ends, so that nothing stale can stay behind.
 */
export async function withBuildLock(root, say, work) {
  const name = `\0ringfence-build-${createHash('sha256').update(root).digest('hex').slice(0, 32)}`;
  let server = await listen(name);
  if (server === null) say('waiting for another build to end');
  while (server === null) {
    await sleep(200);
    server = await listen(name);
  }
  try {
    return await work();
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

function listen(name) {
  return new Promise((resolve, reject) => {
    const server = createServer((connection) => connection.destroy());
    server.once('error', (error) => (error.code === 'EADDRINUSE' ? resolve(null) : reject(error)));
    server.listen(name, () => resolve(server));
  });
}
