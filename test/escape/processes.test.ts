import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';

import { isRunning } from '../support/processes.js';
import { attack, attackClass } from './support/attack.js';
import type { Attempt } from './support/attack.js';
import { outside } from './support/controls.js';
import { randomWord } from './support/lab.js';
import type { Lab } from './support/lab.js';

interface Victim {
  pid: number;
  /** Where in its memory the word is. */
  address: string;
  word: string;
}

async function victim(lab: Lab): Promise<Victim> {
  const word = randomWord();
  const { pid, line } = await lab.start(lab.program, ['victim', word]);
  return { pid, address: line, word };
}

/** A victim that leads a process group of its own. */
async function leader(lab: Lab): Promise<Victim> {
  const word = randomWord();
  const child = spawn(lab.program, ['victim', word], { detached: true, stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { pid: child.pid ?? 0, address: line.toString().trim(), word };
}

const readIt = ({ stdout }: Attempt, { word }: Victim): boolean => stdout.includes(word);

/** Attacks that need nothing but the victim's number. */
const byNumber: [name: string, title: string][] = [
  ['kill', 'A process of the host cannot be killed by its number'],
  ['kill-thread', 'A thread of the host cannot be killed by its number'],
  ['stop', 'A process of the host cannot be stopped'],
  ['queue', 'A process of the host cannot be sent a queued signal'],
  ['pidfd', 'A process of the host cannot be signalled through a pidfd'],
  ['take-descriptor', 'No descriptor can be taken from a process of the host'],
  ['trace', 'A process of the host cannot be traced'],
  ['change-limits', 'The limits of a process of the host cannot be changed'],
  ['change-priority', 'The priority of a process of the host cannot be changed'],
  ['send-by-pipe', 'The kernel cannot be made to signal a process of the host'],
];

attackClass({ name: 'seeing and signalling host processes', program: 'processes.c' }, [
  ...byNumber.map(([name, title]) =>
    attack({
      title,
      ground: victim,
      guest: (lab, { pid }) => lab.attack(name, String(pid)),
      control: outside(),
      check: (_attempt, { pid }) => stillThere(pid),
    }),
  ),
  attack({
    title: 'A process group of the host cannot be signalled',
    ground: leader,
    guest: (lab, { pid }) => lab.attack('kill-group', String(pid)),
    control: outside(),
    check: (_attempt, { pid }) => stillThere(pid),
  }),
  attack({
    title: 'A signal to everybody reaches nobody outside',
    ground: victim,
    guest: (lab) => lab.attack('kill-all'),
    control: {
      down: 'the victim in the same sandbox',
      // Its shell is killed too, so that the run cannot end by itself with 7.
      run: (_guest, options, _ground, lab) =>
        lab.sandbox({ command: '/bin/sh', args: ['-c', 'trap "" TERM; "$0" kill-all; exit 7', lab.program] }, options),
    },
    escaped: ({ result, exitCode }, { pid }) => !isRunning(pid) || (result?.outcome === 'exit' && exitCode === null),
  }),
  attack({
    title: 'The memory of a process of the host cannot be read',
    ground: victim,
    guest: (lab, { pid, address }) => lab.attack('read-memory', String(pid), address),
    control: outside(),
    escaped: readIt,
  }),
  attack({
    title: 'The memory of a process of the host cannot be written to',
    ground: victim,
    guest: (lab, { pid, address }) => lab.attack('write-memory', String(pid), address),
    control: outside(),
  }),
  attack({
    title: 'The memory of a process of the host cannot be opened through /proc',
    ground: victim,
    guest: (lab, { pid, address }) => lab.attack('open-memory', String(pid), address),
    control: outside(),
    escaped: readIt,
  }),
  attack({
    title: 'The processes of the host are not listed in /proc',
    ground: victim,
    guest: (lab, { word }) => lab.attack('find', word.slice(0, 12)),
    control: outside(),
  }),
  attack({
    title: 'No number answers but the own ones',
    ground: victim,
    guest: (lab, { pid }) => lab.attack('count', String(pid)),
    control: outside(),
  }),
]);

function stillThere(pid: number): void {
  if (!isRunning(pid)) throw new Error(`the victim ${pid} is gone`);
}
