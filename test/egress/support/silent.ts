import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/** A listener whose accept queue is full, so that the kernel drops further SYNs: a host that does not answer. */
export async function startSilent(port: number, host: string): Promise<void> {
  const program = `require('node:net').createServer().listen({ port: ${port}, host: '${host}', backlog: 1 }, () => {
    require('node:fs').writeSync(1, 'listening');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  })`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const fillers: Socket[] = [];
  onTestFinished(() => {
    for (const filler of fillers) filler.destroy();
    child.kill('SIGKILL');
  });
  await once(child.stdout, 'data');
  for (let connected = true; connected; ) {
    const filler = connect({ host, port });
    fillers.push(filler);
    connected = await Promise.race([once(filler, 'connect').then(() => true), sleep(500, false)]);
  }
}
