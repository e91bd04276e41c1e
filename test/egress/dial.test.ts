import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';

import { dial } from '../../src/egress/dial.js';
import { serve } from './support/gateway-fixture.js';

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function start(host: string): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const { server, port } = await serve((socket) => {
    connections += 1;
    socket.on('close', () => {}).resume();
    socket.on('end', () => socket.end());
  }, host);
  servers.push(server);
  return { port, connections: () => connections };
}

/** A listener whose accept queue is full, so that the kernel drops further SYNs: a host that does not answer. */
async function startSilent(port: number, host: string): Promise<() => void> {
  const program = `require('node:net').createServer().listen({ port: ${port}, host: '${host}', backlog: 1 }, () => {
    process.stdout.write('listening');
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
  })`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  const fillers = Array.from({ length: 8 }, () => connect({ host, port }).on('error', () => {}));
  await new Promise((resolve) => setTimeout(resolve, 100));
  return () => {
    for (const filler of fillers) filler.destroy();
    child.kill('SIGKILL');
  };
}

const never = new AbortController().signal;

describe('dial', () => {
  it('connects to the address that it was given', async () => {
    const { port } = await start('127.0.0.1');
    const socket = await dial(['127.0.0.1'], port, never);
    expect(socket.remoteAddress).toBe('127.0.0.1');
    socket.destroy();
  });

  it('goes on to the next address when one is refused, in turns of the families, IPv6 first', async () => {
    const { port } = await start('127.0.0.9');
    const socket = await dial(['127.0.0.7', '127.0.0.9', '::1'], port, never);
    expect(socket.remoteAddress).toBe('127.0.0.9');
    socket.destroy();
    const v6 = await start('::1');
    const second = await dial(['127.0.0.1', '::1'], v6.port, never);
    expect(second.remoteAddress).toBe('::1');
    second.destroy();
  });

  it('connects once, also when several addresses answer', async () => {
    const { port, connections } = await start('127.0.0.1');
    const socket = await dial(['127.0.0.1', '127.0.0.1', '127.0.0.1'], port, never);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(connections()).toBe(1);
    socket.destroy();
  });

  it('rejects with the last failure when all are refused, and without any address', async () => {
    const { port } = await start('127.0.0.1');
    await expect(dial(['127.0.0.7', '127.0.0.8'], port, never)).rejects.toMatchObject({ code: 'ECONNREFUSED', address: '127.0.0.8' });
    await expect(dial([], port, never)).rejects.toThrow('no address to connect to');
  });

  it('does not wait for an address that stays silent', async () => {
    const { port } = await start('127.0.0.9');
    const stop = await startSilent(port, '127.0.0.7');
    const started = performance.now();
    const socket = await dial(['127.0.0.7', '127.0.0.9'], port, never);
    expect(socket.remoteAddress).toBe('127.0.0.9');
    expect(performance.now() - started).toBeGreaterThan(200);
    socket.destroy();
    const controller = new AbortController();
    const pending = dial(['127.0.0.7'], port, controller.signal);
    setTimeout(() => controller.abort(new Error('too late')), 50);
    await expect(pending).rejects.toThrow('too late');
    stop();
  });

  it('resolves no name, whatever it is given', async () => {
    const { port } = await start('127.0.0.1');
    await expect(dial(['localhost'], port, never)).rejects.toThrow('not an address: localhost');
  });

  it('rejects with the reason of its signal, before and during', async () => {
    const controller = new AbortController();
    controller.abort(new Error('before'));
    await expect(dial(['127.0.0.1'], 1, controller.signal)).rejects.toThrow('before');
    const during = new AbortController();
    const pending = dial(['127.0.0.1'], 1, during.signal);
    during.abort(new Error('during'));
    await expect(pending).rejects.toThrow('during');
  });
});
