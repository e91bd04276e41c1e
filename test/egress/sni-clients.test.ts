import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';
import { beforeEach, describe, expect, it } from 'vitest';

import { needs } from '../support/skip.js';
import { OpeningReader } from '../../src/egress/sni.js';
import type { Opening } from '../../src/egress/sni.js';
import { missingTools } from './support/tools.js';

/** The first bytes that a client sends to a server that says nothing, read piece by piece as they come. */
async function capture(start: (port: number) => () => void): Promise<{ bytes: Buffer; verdict: Opening }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const stop = start((server.address() as AddressInfo).port);
  const [socket] = await accepted;
  const reader = new OpeningReader();
  const chunks: Buffer[] = [];
  let verdict: Opening = { kind: 'more' };
  for await (const chunk of socket) {
    chunks.push(chunk);
    verdict = reader.push(chunk);
    if (verdict.kind !== 'more') break;
  }
  socket.destroy();
  stop();
  server.close();
  return { bytes: Buffer.concat(chunks), verdict };
}

function run(command: string, args: (port: number) => string[]): (port: number) => () => void {
  return (port) => {
    const child = spawn(command, args(port), { stdio: 'ignore' });
    return () => child.kill('SIGKILL');
  };
}

function viaNode(options: ConnectionOptions): (port: number) => () => void {
  return (port) => {
    const socket = connectTls({ host: '127.0.0.1', port, ...options });
    socket.on('error', () => {});
    return () => socket.destroy();
  };
}

function byByte(bytes: Buffer): Opening {
  const reader = new OpeningReader();
  let verdict: Opening = { kind: 'more' };
  for (const byte of bytes) verdict = reader.push(Buffer.from([byte]));
  return verdict;
}

const missing = missingTools('curl', 'openssl');
beforeEach((context) => needs(context, missing));

describe('the ClientHello of', () => {
  const s_client = (...more: string[]) => run('openssl', (port) => ['s_client', '-connect', `127.0.0.1:${port}`, ...more]);
  it.each<[string, (port: number) => () => void, string | null]>([
    ['Node', viaNode({ servername: 'api.example.com' }), 'api.example.com'],
    ['Node with TLS 1.2', viaNode({ servername: 'api.example.com', maxVersion: 'TLSv1.2' }), 'api.example.com'],
    ['Node without a name', viaNode({}), null],
    ['curl', run('curl', (port) => ['-s', '--connect-to', `::127.0.0.1:${port}`, 'https://api.example.com/']), 'api.example.com'],
    ['curl with upper case', run('curl', (port) => ['-s', '--connect-to', `::127.0.0.1:${port}`, 'https://API.Example.com/']), 'api.example.com'],
    ['curl to an address', run('curl', (port) => ['-s', `https://127.0.0.1:${port}/`]), null],
    ['curl with TLS 1.2', run('curl', (port) => ['-s', '--tls-max', '1.2', '--connect-to', `::127.0.0.1:${port}`, 'https://api.example.com/']), 'api.example.com'],
    ['openssl', s_client('-servername', 'api.example.com'), 'api.example.com'],
    ['openssl with small records', s_client('-servername', 'api.example.com', '-max_send_frag', '512', '-alpn', Array.from({ length: 60 }, (_, index) => `protocol-number-${index}`).join(',')), 'api.example.com'],
    ['openssl without a name', s_client('-noservername'), null],
  ])('%s gives its name', async (_, start, serverName) => {
    const { bytes, verdict } = await capture(start);
    expect(verdict).toEqual({ kind: 'tls', serverName });
    expect(byByte(bytes)).toEqual({ kind: 'tls', serverName });
  });

  it('openssl with small records comes in more than one record', async () => {
    const { bytes } = await capture(s_client('-servername', 'api.example.com', '-max_send_frag', '512', '-alpn', Array.from({ length: 60 }, (_, index) => `protocol-number-${index}`).join(',')));
    expect(bytes.readUInt16BE(3)).toBeLessThanOrEqual(512);
    expect(bytes.length).toBeGreaterThan(1000);
  });
});
