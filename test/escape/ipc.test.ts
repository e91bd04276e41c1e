import { randomInt } from 'node:crypto';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';

import { belongsHere } from '../support/skip.js';
import { attack, attackClass } from './support/attack.js';
import type { Attempt } from './support/attack.js';
import { outside, withPlan } from './support/controls.js';
import { randomWord } from './support/lab.js';
import type { Lab } from './support/lab.js';

interface Kept {
  key: string;
  word: string;
  /** Which kinds there are. */
  line: string;
}

async function kept(lab: Lab): Promise<Kept> {
  const key = String(randomInt(1, 2 ** 31));
  const word = randomWord();
  const { line } = await lab.start(lab.program, ['keep', key, word]);
  return { key, word, line };
}

const gotIt = ({ stdout }: Attempt, { word }: { word: string }): boolean => stdout.includes(word);
const noIpcNamespace = withPlan<Kept>('without an ipc namespace', (plan) => {
  plan.namespaces.ipc = false;
  plan.landlock = null; // it knows no message queues by name, and refuses to open any
});

attackClass({ name: "the host's shared memory and queues", program: 'ipc.c' }, [
  ...([
    ['read-segment', 'A System V segment of the host cannot be attached by its key'],
    ['search-segments', 'No System V segment of the host is to be found by its number'],
    ['read-queue', 'A System V message queue of the host cannot be read'],
  ] as const).map(([name, title]) =>
    attack({ title, ground: kept, guest: (lab, { key }) => lab.attack(name, key), control: noIpcNamespace, escaped: gotIt }),
  ),
  attack({
    title: 'A POSIX message queue of the host cannot be read',
    // A kernel can be built, and a machine set up, without them (CONFIG_POSIX_MQUEUE, fs.mqueue, RLIMIT_MSGQUEUE).
    async requires(context, lab) {
      const { line } = await kept(lab);
      belongsHere(context, line.includes('POSIX'), `where this account may have POSIX message queues (${line})`);
    },
    ground: kept,
    guest: (lab, { key }) => lab.attack('read-posix-queue', key),
    control: noIpcNamespace,
    escaped: gotIt,
  }),
  attack({
    title: 'POSIX shared memory of the host is not there',
    ground() {
      const word = randomWord();
      const file = `/dev/shm/${randomWord()}`;
      writeFileSync(file, word);
      chmodSync(file, 0o644);
      onTestFinished(() => rmSync(file, { force: true }));
      return { file, word };
    },
    guest: (_lab, { file }) => ({ command: '/bin/cat', args: [file] }),
    control: outside(),
    escaped: gotIt,
  }),
]);

