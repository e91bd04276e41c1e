import { execFileSync } from 'node:child_process';
import type { Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';

import { dial } from '../../src/egress/dial.js';
import { needs } from '../support/skip.js';
import { compileSources } from './support/compiled.js';
import { serve } from './support/gateway-fixture.js';
import { startSilent } from './support/silent.js';
import { missingNamespaces } from './support/tools.js';

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
    await startSilent(port, '127.0.0.7');
    const started = performance.now();
    const socket = await dial(['127.0.0.7', '127.0.0.9'], port, never);
    expect(socket.remoteAddress).toBe('127.0.0.9');
    expect(performance.now() - started).toBeGreaterThan(200);
    socket.destroy();
    const controller = new AbortController();
    const pending = dial(['127.0.0.7'], port, controller.signal);
    setTimeout(() => controller.abort(new Error('too late')), 50);
    await expect(pending).rejects.toThrow('too late');
  });

  it('does not take itself for a server', (context) => {
    needs(context, missingNamespaces());
    // Two local ports only, so that the kernel soon picks the one that is dialled.
    const script = 'ip link set lo up && echo 40000 40001 > /proc/sys/net/ipv4/ip_local_port_range && exec "$NODE" --input-type=module -e "$PROGRAM"';
    const program = `
      const { dial } = await import('./src/egress/dial.js');
      const { connect } = await import('node:net');
      const plain = (port) => new Promise((resolve, reject) => connect(port, '127.0.0.1', function () { resolve(this); }).on('error', reject));
      const outcomes = new Set();
      for (let round = 0; round < 100; round += 1) {
        const attempt = process.env.PLAIN ? plain(40000) : dial(['127.0.0.1'], 40000, new AbortController().signal);
        outcomes.add(await attempt.then((socket) => (socket.resetAndDestroy(), 'connected'), (error) => error.code ?? error.message));
      }
      console.log(JSON.stringify([...outcomes]));`;
    const compiled = compileSources();
    const run = (env: Record<string, string>) =>
      JSON.parse(execFileSync('unshare', ['-rn', 'sh', '-c', script], { encoding: 'utf8', cwd: compiled.directory, env: { PATH: process.env['PATH'], NODE: process.execPath, PROGRAM: program, ...env } })) as string[];
    const [control, outcomes] = [run({ PLAIN: '1' }), run({})];
    compiled.remove();
    expect(control).toContain('connected');
    expect(outcomes).toContain('connect 127.0.0.1:40000: only itself was there');
    expect(outcomes).not.toContain('connected');
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
