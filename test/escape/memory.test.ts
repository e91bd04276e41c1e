import { attack, attackClass, noFilter } from './support/attack.js';
import type { Outcome } from '../../src/index.js';
import { withOptions } from './support/controls.js';
import type { Lab } from './support/lab.js';

const script = new URL('../fixtures/escape/memory.mjs', import.meta.url).pathname;
const enough = withOptions('a limit of 512 MiB', () => ({ limits: { memoryMb: 512 } }));

/** Forty-eight MiB, under a limit of sixteen; without the filter, which has no internet sockets for a guest without a network. */
const hogs: [title: string, guest: (lab: Lab) => { command: string; args: string[] }][] = [
  ['Memory of the heap stays in the limit', (lab) => lab.attack('heap', '48')],
  ['Memory that is shared stays in the limit', (lab) => lab.attack('shared-mapping', '48')],
  ['Memory of children stays in the limit of all together', (lab) => lab.attack('children', '48', '6')],
  ['Page tables count as memory', (lab) => lab.attack('page-tables', '48')],
  ['What is in a memfd counts as memory', (lab) => lab.attack('memory-file', '48')],
  ['A System V segment counts as memory', (lab) => lab.attack('system-v', '48')],
  ['What is in System V message queues counts as memory', (lab) => lab.attack('message-queues', '48')],
  ['What is in pipes counts as memory', (lab) => lab.attack('pipes', '48')],
  ['What is in unix sockets counts as memory', (lab) => lab.attack('unix-sockets', '48')],
  ['What is in TCP sockets counts as memory', (lab) => lab.attack('tcp-sockets', '48')],
  ['What is in UDP sockets counts as memory', (lab) => lab.attack('udp-sockets', '48')],
  ['What is in /tmp counts as memory', (lab) => lab.attack('fill-file', '/tmp/hog', '48')],
  ['What is in /dev/shm counts as memory', (lab) => lab.attack('fill-file', '/dev/shm/hog', '48')],
  ['What is in HOME counts as memory', (lab) => lab.attack('fill-file', `${process.env['HOME']}/hog`, '48')],
  ['What is in the working directory counts as memory', (lab) => lab.attack('fill-file', 'hog', '48')],
];

/** Either the kernel kills, or it refuses. */
const outcomes: Outcome[] = ['exit', 'out-of-memory'];

attackClass({ name: 'memory limit', program: 'memory.c', flags: ['-pthread'], besideFilter: true }, [
  ...hogs.map(([title, guest]) =>
    attack({ title, guest, options: () => ({ limits: { memoryMb: 16 }, filesystem: { tmpMb: 256 }, ...noFilter }), outcomes, control: enough }),
  ),
  attack({
    title: "Node's ArrayBuffers stay in the limit",
    guest: () => ({ command: process.execPath, args: [script, 'array-buffer', '110'] }),
    options: () => ({ limits: { memoryMb: 80 }, filesystem: { read: [script] } }),
    outcomes: ['out-of-memory'],
    control: enough,
  }),
  attack({
    title: "Node's own heap stays in the limit",
    guest: () => ({ command: process.execPath, args: [script, 'objects', '110'] }),
    options: () => ({ limits: { memoryMb: 80 }, filesystem: { read: [script] } }),
    outcomes: ['out-of-memory'],
    control: enough,
  }),
]);
