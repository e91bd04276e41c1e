import { existsSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { belongsHere } from '../support/skip.js';
import { attack, attackClass } from './support/attack.js';
import type { Attempt, Guest, Options } from './support/attack.js';
import { afterScript, outside, withCapabilities, withOptions } from './support/controls.js';
import { denoPath } from './support/deno.js';
import { randomWord } from './support/lab.js';
import type { Lab } from './support/lab.js';

interface Services {
  tcp: number;
  tcp6: number;
  udp: number;
  abstract: string;
  directory: string;
  path: string;
  word: string;
}

/** Every service of the host greets with the word. */
async function services(lab: Lab): Promise<Services> {
  const word = randomWord();
  const { line } = await lab.start('python3', [lab.fixture('services.py'), word]);
  return { ...(JSON.parse(line) as Omit<Services, 'word'>), word };
}

const greeted = ({ stdout }: Attempt, { word }: { word: string }): boolean => stdout.includes(word);
const hostNetwork = withOptions("network: 'host'", () => ({ network: 'host' }));

const ownAddress = Object.values(networkInterfaces())
  .flat()
  .find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address;

/** Somebody of the host who wants to be served by the guest. */
async function knock(port: number, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    await sleep(20);
    socket.destroy();
  }
}

async function knocked(guest: Guest, options: Options, port: number, lab: Lab): Promise<Attempt> {
  let over = false;
  const knocking = knock(port, () => over);
  const attempt = await lab.sandbox(guest, options);
  over = true;
  await knocking;
  return attempt;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

attackClass({ name: 'reaching the network', program: 'network.c' }, [
  attack({
    title: 'A TCP service on 127.0.0.1 of the host cannot be reached',
    ground: services,
    guest: (lab, { tcp }) => lab.attack('tcp', '127.0.0.1', String(tcp)),
    control: hostNetwork,
    escaped: greeted,
  }),
  attack({
    title: 'A TCP service on 127.0.0.1 of the host cannot be reached from a network with an allowlist',
    ground: services,
    guest: (lab, { tcp }) => lab.attack('tcp', '127.0.0.1', String(tcp)),
    options: () => ({ network: { allow: ['example.test'] } }),
    control: hostNetwork,
    escaped: greeted,
  }),
  attack({
    title: 'A TCP service on ::1 of the host cannot be reached',
    requires: (context) => belongsHere(context, existsSync('/proc/net/if_inet6'), 'where the kernel has IPv6'),
    ground: services,
    guest: (lab, { tcp6 }) => lab.attack('tcp', '::1', String(tcp6)),
    control: hostNetwork,
    escaped: greeted,
  }),
  attack({
    title: "A TCP service on the host's own address cannot be reached",
    requires: (context) => belongsHere(context, ownAddress !== undefined, 'where the host has an address beside loopback'),
    ground: services,
    guest: (lab, { tcp }) => lab.attack('tcp', ownAddress ?? '', String(tcp)),
    control: hostNetwork,
    escaped: greeted,
  }),
  attack({
    title: 'A UDP service on 127.0.0.1 of the host cannot be reached',
    ground: services,
    guest: (lab, { udp }) => lab.attack('udp', '127.0.0.1', String(udp)),
    control: hostNetwork,
    escaped: greeted,
  }),
  attack({
    title: 'An abstract unix socket of the host cannot be reached',
    ground: services,
    guest: (lab, { abstract }) => lab.attack('abstract', abstract),
    control: hostNetwork,
    escaped: greeted,
  }),
  attack({
    title: 'A unix socket in the file system of the host cannot be reached',
    ground: services,
    guest: (lab, { path: socket }) => lab.attack('path', socket),
    options: () => ({ network: 'host' }),
    control: withOptions('its directory granted', ({ directory }: Services) => ({ filesystem: { read: [directory] } })),
    escaped: greeted,
  }),
  attack({
    title: 'Node cannot reach a service of the host',
    ground: services,
    guest: (lab, { tcp }) => ({ command: process.execPath, args: [lab.fixture('connect.mjs'), String(tcp)] }),
    options: () => ({ filesystem: { read: [path.dirname(new URL('../fixtures/escape/connect.mjs', import.meta.url).pathname)] } }),
    control: hostNetwork,
    escaped: greeted,
  }),
  attack({
    title: 'Deno with every permission of its own cannot reach a service of the host',
    ground: services,
    guest: (lab, { tcp }) => ({ command: denoPath(), args: ['run', '--no-prompt', '--allow-all', lab.fixture('connect.mjs'), String(tcp)] }),
    options: () => ({ filesystem: { read: [path.dirname(new URL('../fixtures/escape/connect.mjs', import.meta.url).pathname)] } }),
    control: hostNetwork,
    escaped: greeted,
  }),
  attack({
    title: 'The metadata address 169.254.169.254 cannot be reached',
    ground: () => ({ word: randomWord() }),
    guest: (lab) => lab.attack('tcp', '169.254.169.254', '80'),
    control: afterScript(
      ({ word }: { word: string }, lab) =>
        `ip link set lo up && ip addr add 169.254.169.254/32 dev lo || exit 1
         sleep 60 | python3 ${lab.fixture('services.py')} ${word} 169.254.169.254 80 >/dev/null &`,
      (lab) => lab.attack('tcp', '169.254.169.254', '80', '1000'),
    ),
    escaped: greeted,
  }),
  attack({
    title: 'The sockets of the host are not listed',
    ground: services,
    guest: (lab, { tcp }) => lab.attack('list-sockets', String(tcp)),
    control: hostNetwork,
  }),
  attack({
    title: 'There is no interface but loopback',
    requires: (context) => belongsHere(context, ownAddress !== undefined, 'where the host has an interface beside loopback'),
    guest: (lab) => lab.attack('list-interfaces'),
    control: hostNetwork,
  }),
  attack({
    title: 'A packet socket cannot be had',
    guest: (lab) => lab.attack('packet'),
    control: withCapabilities(),
  }),
  attack({
    title: 'A raw socket cannot be had',
    guest: (lab) => lab.attack('raw'),
    control: withCapabilities(),
  }),
  attack({
    title: 'No socket can be had that reaches past the network namespace, to the hypervisor or into the kernel',
    filterOnly: true,
    guest: (lab) => lab.attack('other-families'),
    control: outside(),
  }),
  attack({
    title: 'Addresses and interfaces cannot be set over netlink',
    guest: (lab) => lab.attack('add-address'),
    control: withCapabilities(),
  }),
  attack({
    title: 'The network namespace cannot be changed for another or for a new one',
    guest: (lab) => lab.attack('change-namespace'),
    control: withCapabilities(),
  }),
  attack({
    title: 'What the guest listens on is no service of the host',
    ground: async () => ({ port: await freePort() }),
    guest: (lab, { port }) => lab.attack('accept', String(port), '500'),
    inside: (guest, options, { port }, lab) => knocked(guest, options, port, lab),
    control: {
      down: "network: 'host'",
      run: (guest, options, { port }, lab) => knocked(guest, { ...options, network: 'host' }, port, lab),
    },
  }),
]);
