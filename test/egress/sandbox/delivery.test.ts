import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';

import { runSandboxed } from '../../../src/index.js';
import type { SandboxResult } from '../../../src/index.js';
import { patience } from '../../support/lane.js';
import { useOwnTmpdir } from '../../support/temporary.js';

useOwnTmpdir();
const SENT = 12_000_000;

interface Reader {
  port: number;
  /** Resolves with what came, and how it ended. */
  received: Promise<{ bytes: number; end: 'end' | 'reset' }>;
}

/** A server that reads so many bytes a millisecond. */
async function reader(pace: number): Promise<Reader> {
  const server = createServer({ highWaterMark: 65_536 });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const received = once(server, 'connection').then(([socket]: Socket[]) => {
    onTestFinished(() => void socket?.destroy());
    return socket === undefined ? { bytes: 0, end: 'reset' as const } : read(socket, pace);
  });
  return { port: (server.address() as AddressInfo).port, received };
}

function read(socket: Socket, pace: number): Promise<{ bytes: number; end: 'end' | 'reset' }> {
  return new Promise((resolve) => {
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      socket.pause();
      if (pace > 0) void sleep(chunk.length / pace).then(() => socket.resume());
    });
    socket.on('end', () => resolve({ bytes, end: 'end' }));
    socket.on('error', () => resolve({ bytes, end: 'reset' }));
  });
}

/** A guest that sends all that and ends at once. */
function sender(port: number, timeoutMs: number, signal?: AbortSignal): Promise<SandboxResult> {
  const script = `import socket\nsock = socket.create_connection(("api.test", ${port}))\nsock.sendall(b"x" * ${SENT})\nsock.close()\nprint("sent", flush=True)`;
  const network = { allow: [`api.test:${port}`], hosts: { 'api.test': '127.0.0.1' }, allowPrivate: ['127.0.0.1/32'] };
  return runSandboxed({ command: '/usr/bin/python3', args: ['-c', script], timeoutMs, network, signal });
}

describe('what a guest has sent before it ended', { timeout: patience(60_000) }, () => {
  it('is delivered to a server that takes its time', async () => {
    const { port, received } = await reader(4000);
    const result = await sender(port, patience(40_000));
    expect(result).toMatchObject({ outcome: 'exit', exitCode: 0, connections: [{ verdict: 'allowed', reason: 'closed', bytesSent: SENT }] });
    expect(await received).toEqual({ bytes: SENT, end: 'end' });
  });

  it('ends with a reset, and a word in the log, where the server takes no more until the deadline', async () => {
    // So much that it cannot all wait in the kernel.
    const { port, received } = await reader(0);
    const started = performance.now();
    const result = await sender(port, 4000);
    const how = result.outcome === 'exit' ? 'the guest ended, and the server took no more' : 'the run ended';
    expect(result.connections).toMatchObject([{ verdict: 'allowed', reason: how }]);
    expect(performance.now() - started).toBeLessThan(20_000);
    expect((await Promise.race([received, sleep(1000, null)]))?.end).not.toBe('end');
  });

  it('is not waited for any more once the run is aborted', async () => {
    const { port } = await reader(1000);
    const abort = new AbortController();
    const running = sender(port, patience(40_000), abort.signal);
    await sleep(patience(2500));
    abort.abort();
    const started = performance.now();
    const result = await running;
    expect(performance.now() - started).toBeLessThan(4000);
    expect(result.connections).toMatchObject([{ reason: 'the run ended' }]);
  });
});
