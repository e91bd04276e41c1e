import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

import type { Question } from 'dns-packet';

import { parseRange } from '../../../src/egress/addresses.js';
import { dial } from '../../../src/egress/dial.js';
import { Gateway } from '../../../src/egress/gateway.js';
import { NameTable } from '../../../src/egress/name-table.js';
import { compilePolicy } from '../../../src/egress/policy.js';
import type { EgressOptions } from '../../../src/egress/policy.js';
import { dnsResolver } from '../../../src/egress/resolve.js';
import { freePort } from '../../support/free-port.js';
import { startDns } from './dns-fixture.js';
import type { DnsFixture, DnsFixtureReply } from './dns-fixture.js';

/** A range of loopback in place of 198.18.0.0/15: a namespace of its own needs no test of the host's side. */
const RANGE = parseRange('127.18.0.0/16');

export interface GatewayFixture {
  gateway: Gateway;
  dns: DnsFixture;
  /** Connects as the guest would, to the address that the sandbox's DNS gives for the name. */
  dial(name: string, port: number): Socket;
  addressOf(name: string): string;
  /** Where the sandbox's resolver listens, on 127.0.0.1. */
  dnsPort: number;
  /** What onConnection threw. */
  thrown: unknown[];
  close(): Promise<void>;
}

export interface GatewaySetup {
  options: EgressOptions;
  dns: (question: Question) => DnsFixtureReply | null;
  /** Names that the guest has looked up, with the ports that there are listeners for. */
  dialled: Record<string, number[]>;
  /** Further addresses that the guest dials, with the ports that there are listeners for. */
  extra?: Record<string, number[]>;
  /** The host's own addresses, or why they cannot be told. */
  own?: string[] | Error;
  /** Where literals are found: on one loopback, the address that is dialled inside is the gateway's own listener. */
  dialInstead?: string;
}

/** A gateway on loopback with real sockets, a real resolver and a DNS server of its own. */
export async function openGateway(setup: GatewaySetup): Promise<GatewayFixture> {
  const names = new NameTable(4096, RANGE);
  const dns = await startDns(setup.dns);
  const addresses = new Map(Object.keys(setup.dialled).map((name) => [name, names.addressOf(name) ?? '']));
  const dialled = [...Object.entries(setup.dialled).map(([name, ports]) => [addresses.get(name) ?? '', ports] as const), ...Object.entries(setup.extra ?? {})];
  const listeners = dialled.flatMap(([host, ports]) => ports.map((port) => ({ port, endpoint: { host, port } })));
  const dnsPort = await freePort();
  const { dialInstead } = setup;
  const thrown: unknown[] = [];
  const gateway = await Gateway.open({
    policy: compilePolicy({ allowPrivate: ['127.0.0.0/8'], ...setup.options }),
    sockets: { listeners, dnsUdp: { host: '127.0.0.1', port: dnsPort }, dnsTcp: { host: '127.0.0.1', port: dnsPort } },
    onThrow: (error) => thrown.push(error),
    replace: {
      names,
      resolve: dnsResolver([dns.server]),
      ownAddresses: async () => {
        if (setup.own instanceof Error) throw setup.own;
        return new Set(setup.own ?? []);
      },
      ...(dialInstead !== undefined && { dial: (_, port, signal) => dial([dialInstead], port, signal) }),
    },
  });
  return {
    gateway,
    dns,
    dnsPort,
    thrown,
    addressOf: (name) => addresses.get(name) ?? '',
    dial: (name, port) => {
      const socket = connect({ host: addresses.get(name) ?? '', port, allowHalfOpen: true });
      socket.on('error', () => {});
      return socket;
    },
    async close() {
      await gateway.close(0);
      await dns.close();
    },
  };
}

/** A server of the tests' own on a free port of loopback. */
export async function serve(handler: (socket: Socket) => void, host = '127.0.0.1', at = 0): Promise<{ server: Server; port: number }> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    handler(socket);
  });
  server.listen(at, host);
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** Everything a socket gives until it closes, and the code of its error. */
export async function drain(socket: Socket): Promise<{ bytes: Buffer; error: string | null }> {
  const chunks: Buffer[] = [];
  let error: string | null = null;
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', (problem: NodeJS.ErrnoException) => (error = problem.code ?? problem.message));
  socket.on('end', () => socket.end());
  if (!socket.closed) await once(socket, 'close').catch(() => {});
  return { bytes: Buffer.concat(chunks), error };
}
