import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';

import { locateLauncher } from '../../src/launcher/locate.js';
import { attack, attackClass } from './support/attack.js';
import { aimedAt } from './support/controls.js';
import { openDirectory } from './support/lab.js';
import type { Lab } from './support/lab.js';

/** Attacks whose control is a child of the guest's own: a process of the same uid, without init's protection. */
const onInit: [name: string, title: string][] = [
  ['read-files', 'The environment, memory, maps and limits of process 1 cannot be read'],
  ['follow-links', 'The program, root, working directory and descriptors of process 1 cannot be followed'],
  ['send-signals', 'No signal kills or stops process 1, and none is left that fills its queue'],
  ['trace', 'Process 1 cannot be traced'],
  ['read-memory', 'The memory of process 1 cannot be copied'],
  ['take-descriptors', 'No descriptor can be taken from process 1'],
  ['take-limits', 'Process 1 goes on without the limits that a guest of the same uid can take from it'],
];

function launcherBytes(): { launcher: string; before: Buffer } {
  const launcher = locateLauncher();
  return { launcher, before: readFileSync(launcher) };
}

/** A program that the guest may write to: what the launcher is not. */
function writableCopy(lab: Lab): { directory: string; copy: string } {
  const directory = openDirectory(lab.directory(), 'open', 0o777);
  const copy = path.join(directory, 'copy');
  copyFileSync(lab.program, copy);
  chmodSync(copy, 0o777);
  return { directory, copy };
}

attackClass({ name: 'process 1 of the sandbox', program: 'init.c' }, [
  ...onInit.map(([name, title]) =>
    attack({
      title,
      // Without it a guest can give process 1 one second of cpu time, of which a slow machine has used some: its own end.
      ...(name === 'take-limits' && { filterOnly: true }),
      guest: (lab) => lab.attack(name, '1'),
      control: aimedAt('aimed at a child', (lab) => lab.attack(name, 'child')),
    }),
  ),
  attack({
    title: 'The launcher cannot be written to through the program of process 1',
    ground: (lab) => ({ ...launcherBytes(), ...writableCopy(lab) }),
    guest: (lab) => lab.attack('write-program', '1'),
    options: ({ directory }) => ({ filesystem: { write: [directory] } }),
    control: aimedAt('aimed at a program of its own', (lab, { copy }: { copy: string }) => lab.attack('write-program', 'child', copy)),
    check: (_attempt, { launcher, before }) => expect(readFileSync(launcher).equals(before)).toBe(true),
  }),
  attack({
    title: 'A script that names /proc/self/exe as its interpreter gets no hold of the launcher',
    ground(lab) {
      const directory = openDirectory(lab.directory(), 'open', 0o777);
      const script = path.join(directory, 'script');
      writeFileSync(script, '#!/proc/self/exe interpret\n');
      chmodSync(script, 0o755);
      return { ...launcherBytes(), directory, script };
    },
    guest: (_lab, { script }) => ({ command: script, args: [] }),
    options: ({ directory }) => ({ filesystem: { write: [directory] } }),
    outcomes: ['exit', 'spawn-error'],
    escaped: ({ verdict }, { launcher, before }) => verdict === 'escaped' || !readFileSync(launcher).equals(before),
    control: {
      down: 'started by a program that is not the launcher',
      run: ({ command }, options, _ground, lab) => lab.sandbox(lab.attack('start', command), options),
    },
  }),
]);
