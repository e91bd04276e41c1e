import { readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

import { patience } from '../support/lane.js';
import { attack, attackClass } from './support/attack.js';
import type { Attempt } from './support/attack.js';
import { outside } from './support/controls.js';
import { randomWord } from './support/lab.js';
import type { Lab } from './support/lab.js';
import { survivors } from './support/survivors.js';

interface Neighbour {
  /** As the host numbers it. */
  pid: number;
  /** Where in its memory the word is. */
  address: string;
  word: string;
}

/** A guest of another sandbox, of the same host and account, until the test is over. */
async function neighbour(lab: Lab): Promise<Neighbour> {
  const word = randomWord();
  const controller = new AbortController();
  let said = '';
  const run = lab.sandbox(
    { command: lab.program, args: ['victim', word] },
    { stdin: new PassThrough(), signal: controller.signal, timeoutMs: patience(60_000), onStdout: (chunk) => void (said += chunk.toString()) },
  );
  onTestFinished(async () => {
    controller.abort();
    await run;
  });
  for (const end = performance.now() + patience(10_000); !said.includes('\n') && performance.now() < end; ) await sleep(20);
  const pid = survivors(word).find((each) => readFileSync(`/proc/${each}/cmdline`, 'utf8').startsWith(`${lab.program}\0victim`));
  if (pid === undefined) throw new Error(`the other sandbox has no guest: ${said}`);
  return { pid, address: said.trim(), word };
}

const readIt = ({ stdout }: Attempt, { word }: Neighbour): boolean => stdout.includes(word);

attackClass({ name: 'another sandbox at the same time', program: 'processes.c' }, [
  ...([
    ['kill', 'Its guest cannot be killed'],
    ['stop', 'Its guest cannot be stopped'],
    ['trace', 'Its guest cannot be traced'],
    ['take-descriptor', 'No descriptor can be taken from its guest'],
    ['change-limits', 'The limits of its guest cannot be changed'],
  ] as const).map(([name, title]) => attack({ title, ground: neighbour, guest: (lab, { pid }) => lab.attack(name, String(pid)), control: outside() })),
  attack({
    title: 'The memory of its guest cannot be read',
    ground: neighbour,
    guest: (lab, { pid, address }) => lab.attack('read-memory', String(pid), address),
    control: outside(),
    escaped: readIt,
  }),
  attack({
    title: 'Its guest is not listed in /proc',
    ground: neighbour,
    guest: (lab, { word }) => lab.attack('find', word.slice(0, 12)),
    control: outside(),
  }),
]);
