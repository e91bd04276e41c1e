import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';

import { runSandboxed } from '../../../src/index.js';
import type { SandboxOptions, SandboxResult } from '../../../src/index.js';
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

const ALL = `sock.sendall(b"x" * ${SENT})`;
/** As much as the kernel takes of it. */
const SOME = `import time
sock.setblocking(False)
refused = 0
while refused < 10:
    try:
        sock.send(b"x" * 65536)
        refused = 0
    except BlockingIOError:
        refused += 1
        time.sleep(0.05)`;

/** A guest that sends that and ends at once. */
function sender(port: number, what: string, options: Pick<SandboxOptions, 'timeoutMs' | 'signal' | 'onStdout'>): Promise<SandboxResult> {
  const script = `import socket\nsock = socket.create_connection(("api.test", ${port}))\n${what}\nsock.close()\nprint("sent", flush=True)`;
  const network = { allow: [`api.test:${port}`], hosts: { 'api.test': '127.0.0.1' }, allowPrivate: ['127.0.0.1/32'] };
  return runSandboxed({ command: '/usr/bin/python3', args: ['-c', script], network, ...options });
}

describe('what a guest has sent before it ended', { timeout: patience(60_000) }, () => {
  it('is delivered to a server that takes its time', async () => {
    const { port, received } = await reader(4000);
    const result = await sender(port, ALL, { timeoutMs: patience(40_000) });
    expect(result).toMatchObject({ outcome: 'exit', exitCode: 0, connections: [{ verdict: 'allowed', reason: 'closed', bytesSent: SENT }] });
    expect(await received).toEqual({ bytes: SENT, end: 'end' });
  });

  it('ends with a reset, and a word in the log, where the server takes no more until the deadline', async () => {
    const { port, received } = await reader(0);
    const started = performance.now();
    const result = await sender(port, SOME, { timeoutMs: 5000 });
    expect(result).toMatchObject({ outcome: 'exit', connections: [{ verdict: 'allowed', reason: 'the guest ended, and the server took no more' }] });
    expect(performance.now() - started).toBeLessThan(20_000);
    expect((await Promise.race([received, sleep(1000, null)]))?.end).not.toBe('end');
  });

  it('is not waited for any more once the run is aborted', async () => {
    const { port } = await reader(0);
    const abort = new AbortController();
    let abortedAt = 0;
    const onStdout = () => {
      // By then the guest has ended.
      setTimeout(() => {
        abortedAt = performance.now();
        abort.abort();
      }, 1000);
    };
    const result = await sender(port, SOME, { timeoutMs: 60_000, signal: abort.signal, onStdout });
    expect(performance.now() - abortedAt).toBeLessThan(3000);
    expect(result).toMatchObject({ outcome: 'exit', connections: [{ reason: 'the run ended' }] });
  });
});
