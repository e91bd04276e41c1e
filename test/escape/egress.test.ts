import { readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';

import { clientHello, records } from '../egress/support/hello.js';
import { freePort } from '../support/free-port.js';
import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { attack, attackClass } from './support/attack.js';
import type { Attempt, Guest, Options } from './support/attack.js';
import { aimedAt, withCapabilities, withOptions } from './support/controls.js';
import { randomWord } from './support/lab.js';
import type { Lab } from './support/lab.js';

const about = { name: 'getting past an allowlist', program: 'egress.c' };

interface Service {
  port: number;
  word: string;
}

/** A service of the host on all its addresses, which greets whoever comes. */
async function service(lab: Lab): Promise<Service> {
  const word = randomWord();
  const { line } = await lab.start('/usr/bin/python3', [lab.fixture('services.py'), word]);
  return { port: (JSON.parse(line) as { tcp: number }).tcp, word };
}

/** A server that answers as soon as it has heard anything at all. */
async function listener(): Promise<Service> {
  const word = randomWord();
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(word));
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, word };
}

const greeted = ({ stdout }: Attempt, { word }: { word: string }): boolean => stdout.includes(word);

/** `api.test` is a name for the host's loopback, with this port; no DNS is asked. */
const allowed = (port: number, more: object = {}): Options => ({
  network: { allow: [`api.test:${port}`], hosts: { 'api.test': '127.0.0.1' }, allowPrivate: ['127.0.0.1/32'], ...more },
});
const byName = aimedAt<Service>('aimed at the allowed name', (lab, { port }) => lab.attack('tcp', 'api.test', String(port)));
const hostNetwork = withOptions("network: 'host'", () => ({ network: 'host' }));

const ownAddress = Object.values(networkInterfaces()).flat().find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address;

const unnamed = (title: string, address: string) =>
  attack({
    title,
    ground: service,
    guest: (lab, { port }) => lab.attack('tcp', address, String(port)),
    options: ({ port }) => allowed(port),
    control: byName,
    escaped: greeted,
    check: ({ result }, { port }) => {
      expect(result?.connections).toMatchObject([{ port, verdict: 'refused' }]);
    },
  });

/** Bytes as the program takes them; a dash ends a segment. */
const hex = (...pieces: Buffer[]): string => pieces.map((piece) => piece.toString('hex')).join('-');
const named = (name: string) => records(clientHello({ names: [[0, name]] }));
const cut = (bytes: Buffer, size: number): Buffer[] => Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));

const fronting = (title: string, ...pieces: Buffer[]) =>
  attack({
    title,
    ground: listener,
    guest: (lab, { port }) => lab.attack('say', 'api.test', String(port), hex(...pieces)),
    options: ({ port }) => allowed(port),
    control: withOptions("sni: 'any'", ({ port }: Service) => allowed(port, { allow: [{ host: `api.test:${port}`, sni: 'any' }] })),
    escaped: greeted,
  });

attackClass(about, [
  unnamed("A service of the host cannot be reached at 127.0.0.1 through the name's port", '127.0.0.1'),
  unnamed('Nor at another address of loopback', '127.9.9.9'),
  unnamed('Nor at 0.0.0.0, which Linux connects to itself', '0.0.0.0'),
  unnamed('Nor at an address of the range that no name has', '198.19.255.254'),
  unnamed("Nor at the sandbox's own address", '198.18.0.1'),
  unnamed('Nor through the IPv4-mapped form of its address', '::ffff:127.0.0.1'),
  attack({
    title: 'Nor at an address of the host that others reach it by',
    requires: (context) => belongsHere(context, ownAddress !== undefined, 'where the host has an address beside loopback'),
    ground: service,
    guest: (lab, { port }) => lab.attack('tcp', ownAddress ?? '', String(port)),
    options: ({ port }) => allowed(port),
    control: hostNetwork,
    escaped: greeted,
  }),
  attack({
    title: 'Another port of the allowed host cannot be reached',
    ground: service,
    guest: (lab, { port }) => lab.attack('tcp', 'api.test', String(port)),
    options: () => allowed(1),
    control: withOptions('that port allowed', ({ port }: Service) => allowed(port)),
    escaped: greeted,
  }),
  attack({
    title: 'A name below the allowed one cannot be reached',
    ground: service,
    guest: (lab, { port }) => lab.attack('tcp', 'sub.api.test', String(port)),
    options: ({ port }) => allowed(port),
    control: withOptions('a wildcard', ({ port }: Service) => allowed(port, { allow: [`*.api.test:${port}`], hosts: { 'sub.api.test': '127.0.0.1' } })),
    escaped: greeted,
  }),
  attack({
    title: 'The port of the resolver cannot be taken, to answer in its stead',
    guest: (lab) => lab.attack('bind-resolver'),
    options: () => allowed(1),
    control: withCapabilities(),
  }),
  attack({
    title: "Listening where the gateway listens gets nobody's connections but the guest's own",
    ground: async () => ({ port: await freePort() }),
    guest: (lab, { port }) => lab.attack('join-listeners', String(port), '1500'),
    options: ({ port }) => allowed(port),
    inside: (guest, options, { port }, lab) => knocked(guest, options, port, lab),
    control: { down: "network: 'host'", run: (guest, options, { port }, lab) => knocked(guest, { ...options, network: 'host' }, port, lab) },
  }),
]);

async function knocked(guest: Guest, options: Options, port: number, lab: Lab): Promise<Attempt> {
  let over = false;
  const knocking = (async () => {
    const { connect } = await import('node:net');
    while (!over) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      await sleep(20);
      socket.destroy();
    }
  })();
  const attempt = await lab.sandbox(guest, options);
  over = true;
  await knocking;
  return attempt;
}

attackClass({ ...about, name: 'TLS under another name' }, [
  fronting('A hello with another server name does not arrive', named('evil.test')),
  fronting('Nor one in segments of a byte each', ...cut(named('evil.test'), 1)),
  fronting('Nor one cut into records of a byte each', records(clientHello({ names: [[0, 'evil.test']] }), new Array<number>(200).fill(1))),
  fronting('Nor one without a server name', records(clientHello({ names: null }))),
  fronting('Nor one whose name only begins like the allowed one', named('api.test.evil.test')),
  fronting('Nor one with the allowed name first and another behind it', records(clientHello({ names: [[0, 'api.test'], [0, 'evil.test']] }))),
  fronting('Nor one with a NUL behind the allowed name', named('api.test\0.evil.test')),
  fronting('Nor one behind a warning that lenient servers skip', Buffer.from('15000000020100', 'hex'), named('evil.test')),
  fronting('Nor one in the format of SSLv2', Buffer.from('802e010301001500000010000004000005', 'hex'), Buffer.alloc(31)),
  fronting('Nor the beginning of one', named('evil.test').subarray(0, 40)),
]);

const descriptors = () => readdirSync('/proc/self/fd').length;

/** Runs the guest and sees how many descriptors the host held at most. */
async function counted(guest: Guest, options: Options, lab: Lab): Promise<Attempt & { most: number }> {
  let most = 0;
  const timer = setInterval(() => (most = Math.max(most, descriptors())), 5);
  try {
    return { ...(await lab.sandbox(guest, options)), most };
  } finally {
    clearInterval(timer);
  }
}

async function silent(): Promise<{ port: number }> {
  const server = createServer((socket) => socket.on('error', () => undefined));
  server.listen(0, '127.0.0.1', 4096);
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port };
}

attackClass({ ...about, name: 'wearing the gateway out' }, [
  attack({
    title: 'Opening 10,000 connections holds no more of them open than maxConnections',
    requires: (context) => belongsHere(context, !whereAmI().uml, 'outside of User-Mode Linux, where that takes minutes'),
    ground: silent,
    guest: (lab, { port }) => lab.attack('hold-open', 'api.test', String(port), '10000', '300'),
    options: ({ port }) => ({ ...allowed(port), limits: { openFiles: 12_000 }, timeoutMs: 60_000 }),
    inside: (guest, options, _, lab) => counted(guest, options, lab),
    control: {
      down: 'maxConnections of 500',
      run: (_, __, { port }, lab) => counted(lab.attack('hold-open', 'api.test', String(port), '600', '1000'), { ...allowed(port, { maxConnections: 500 }), limits: { openFiles: 1000 } }, lab),
    },
    // Of a connection the host holds two ends, and a third as it is the server here.
    escaped: (attempt) => (attempt as Attempt & { most: number }).most > 900,
    check: ({ result }) => {
      const { connections, connectionsOmitted } = result ?? { connections: [], connectionsOmitted: 0 };
      expect(connections.length + connectionsOmitted).toBe(10_000);
      expect(connections.some(({ reason }) => reason === 'more than 64 connections at one time')).toBe(true);
    },
  }),
]);
