import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, ListenOptions } from 'node:net';
import path from 'node:path';

import { onTestFinished } from 'vitest';

import { attack, attackClass } from './support/attack.js';
import type { Carried } from './support/attack.js';
import { alone, aloneInside, beside, outsideAlone, own, requiresLandlock } from './support/alone.js';
import { randomWord } from './support/lab.js';
import type { Lab } from './support/lab.js';

interface Place {
  directory: string;
  file: string;
  word: string;
}

/** A file of the account's own in a directory of its own: no permission bit keeps it from the guest. */
function place(lab: Lab): Place {
  const directory = lab.directory();
  const file = path.join(directory, 'secret');
  const word = randomWord();
  writeFileSync(file, word);
  chmodSync(file, 0o600);
  own(directory, file);
  return { directory, file, word };
}

const reads = (attempt: { stdout: string }, { word }: Place) => attempt.stdout.includes(word);

interface OnFiles {
  name: string;
  title: string;
  aim?(ground: Place): string;
  escaped?(attempt: { stdout: string; verdict: string | null }, ground: Place): boolean;
  filterOnly?: boolean;
}

const intact = ({ file, word }: Place) => existsSync(file) && readFileSync(file, 'utf8') === word;

const onFiles: OnFiles[] = [
  { name: 'read', title: "A file of the account's own cannot be read", escaped: reads },
  { name: 'list', title: 'A directory outside the view cannot be listed', aim: ({ directory }) => directory },
  { name: 'list', title: 'The root directory cannot be listed', aim: () => '/' },
  { name: 'list', title: "The machine's processes cannot be listed", aim: () => '/proc' },
  { name: 'read-by-symlink', title: 'A link to a file does not let it be read', escaped: reads },
  { name: 'read-by-hard-link', title: 'A file cannot be linked into the working directory and read there', escaped: reads },
  { name: 'read-from-below', title: 'A way up from the working directory leads to nothing that can be read', escaped: reads },
  { name: 'reopen', title: 'A descriptor that opens for nothing cannot be opened again for reading', escaped: reads },
  { name: 'append', title: 'A file cannot be written to', escaped: (_, ground) => !intact(ground) },
  { name: 'cut', title: 'A file cannot be cut', escaped: (_, ground) => !intact(ground) },
  { name: 'drop', title: 'A file cannot be removed', escaped: (_, ground) => !intact(ground) },
  { name: 'take', title: 'A file cannot be moved into the working directory', escaped: (_, ground) => !intact(ground) },
  { name: 'create', title: 'Nothing can be made outside', aim: ({ directory }) => `${directory}/new`, escaped: (_, { directory }) => readdirSync(directory).length > 1 },
  { name: 'make-directory', title: 'No directory can be made outside', aim: ({ directory }) => `${directory}/new`, escaped: (_, { directory }) => readdirSync(directory).length > 1 },
  { name: 'change-mode', title: 'The mode of a file stays', escaped: (_, { file }) => (lstatSync(file).mode & 0o777) !== 0o600, filterOnly: true },
  { name: 'change-time', title: 'The times of a file stay', escaped: (_, { file }) => lstatSync(file).mtimeMs < 1e12, filterOnly: true },
  { name: 'change-attribute', title: 'A file gets no attribute', filterOnly: true },
];

function onFile({ name, title, aim = ({ file }) => file, escaped, filterOnly = false }: OnFiles): Carried {
  return attack({
    title,
    ground: place,
    guest: (lab, ground) => lab.attack(name, aim(ground)),
    filterOnly,
    inside: (guest, options, _ground, lab) => aloneInside(guest, options, lab),
    ...(escaped === undefined ? {} : { escaped }),
    control: outsideAlone(),
    requires: requiresLandlock,
  });
}

/** A process of the same account, outside. */
const helper = async (lab: Lab) => {
  const [command = '', ...args] = [...alone, 'sh', '-c', 'echo up; read line'];
  return lab.start(command, args);
};

const onProcesses: [name: string, title: string, filterOnly: boolean][] = [
  ['send-signal', 'Another process of the account cannot be signalled', false],
  ['slow-down', 'Another process of the account cannot be slowed down', true],
  ['limit', 'Another process of the account keeps its limits', true],
];

const onOthers: [name: (file: string) => string, title: string][] = [
  [() => 'environ', 'The environment of another process of the account cannot be read'],
  [() => 'cmdline', 'The arguments of another process of the account cannot be read'],
  [(file) => `root${file}`, "A file cannot be read by way of another process's root directory"],
];

async function listening(lab: Lab, of: (directory: string) => ListenOptions): Promise<string> {
  const directory = lab.directory();
  const server = createServer((socket) => socket.end());
  onTestFinished(() => void server.close());
  const options = of(directory);
  await new Promise<void>((resolve) => server.listen(options, resolve));
  if (options.path === undefined) return String((server.address() as AddressInfo).port);
  chmodSync(options.path, 0o777);
  return options.path;
}

const onSockets: [name: string, title: string, of: (directory: string) => ListenOptions, filterOnly: boolean][] = [
  ['connect-path', 'A socket of the host in a directory cannot be connected to', (directory) => ({ path: `${directory}/socket` }), true],
  ['connect-tcp', 'A service of the host on loopback cannot be connected to', () => ({ port: 0, host: '127.0.0.1' }), false],
  ['send-udp', 'No datagram can be sent to loopback', () => ({ port: 0, host: '127.0.0.1' }), true],
];

attackClass({ name: 'no namespaces to be had', program: 'alone.c' }, [
  ...onFiles.map(onFile),
  attack({
    title: 'A program outside the view cannot be started',
    ground(lab) {
      const directory = lab.directory();
      const program = path.join(directory, 'program');
      writeFileSync(program, '#!/bin/sh\necho ESCAPED it runs\n', { mode: 0o755 });
      return { program };
    },
    guest: (lab, { program }) => lab.attack('execute', program),
    inside: (guest, options, _ground, lab) => aloneInside(guest, options, lab),
    control: outsideAlone(),
    requires: requiresLandlock,
  }),
  ...(['append', 'change-granted-mode'] as const).map((name) =>
    attack({
      title: name === 'append' ? 'A file granted for reading cannot be written to' : 'A file granted for reading keeps its mode',
      ground: place,
      guest: (lab, { file }) => lab.attack(name, file),
      options: ({ file }) => ({ filesystem: { read: [file] } }),
      filterOnly: name !== 'append',
      inside: (guest, options, _ground, lab) => aloneInside(guest, options, lab),
      escaped: (_, ground) => !intact(ground) || (lstatSync(ground.file).mode & 0o777) !== 0o600,
      control: outsideAlone(),
      requires: requiresLandlock,
    }),
  ),
  ...onProcesses.map(([name, title, filterOnly]) =>
    attack({
      title,
      ground: helper,
      guest: (lab, { pid }) => lab.attack(name, String(pid)),
      filterOnly,
      inside: (guest, options, _ground, lab) => aloneInside(guest, options, lab),
      control: outsideAlone(),
      requires: requiresLandlock,
    }),
  ),
  ...onOthers.map(([name, title]) =>
    attack({
      title,
      ground(lab) {
        const ground = place(lab);
        const number = path.join(ground.directory, 'number');
        writeFileSync(number, '');
        own(number);
        return { ...ground, number };
      },
      guest: (lab, { number, file }) => lab.attack('read-of-process', number, name(file)),
      options: ({ number }) => ({ filesystem: { read: [number] } }),
      inside: (guest, options, { number }, lab) => aloneInside(guest, options, lab, beside(number)),
      control: outsideAlone(({ number }) => beside(number)),
      requires: requiresLandlock,
    }),
  ),
  ...onSockets.map(([name, title, of, filterOnly]) =>
    attack({
      title,
      ground: (lab) => listening(lab, of),
      guest: (lab, where) => lab.attack(name, where),
      filterOnly,
      inside: (guest, options, _ground, lab) => aloneInside(guest, options, lab),
      control: outsideAlone(),
      requires: requiresLandlock,
    }),
  ),
  attack({
    title: 'An abstract socket of the host cannot be connected to',
    async ground(lab) {
      const name = randomWord();
      await lab.start(lab.program, ['listen-abstract', name]);
      return name;
    },
    guest: (lab, name) => lab.attack('connect-abstract', name),
    inside: (guest, options, _ground, lab) => aloneInside(guest, options, lab),
    control: outsideAlone(),
    requires: requiresLandlock,
  }),
  attack({
    title: "A System V segment of the account's cannot be attached",
    async ground(lab) {
      const key = `0x${randomWord().slice(0, 7)}`;
      const [command = '', ...args] = [...alone, lab.program, 'keep-segment', key];
      await lab.start(command, args);
      return key;
    },
    guest: (lab, key) => lab.attack('attach-segment', key),
    filterOnly: true,
    inside: (guest, options, _ground, lab) => aloneInside(guest, options, lab),
    control: outsideAlone(),
    requires: requiresLandlock,
  }),
]);
