import { expect } from 'vitest';

import type { Outcome } from '../../src/index.js';
import { patience } from '../support/lane.js';
import { attack, attackClass } from './support/attack.js';
import type { Attempt, Carried } from './support/attack.js';
import { randomWord } from './support/lab.js';
import { survivors, survivorsOutside } from './support/survivors.js';

function trick(name: string, title: string, outcome: Outcome = 'exit', more: string[] = []): Carried {
  return attack({
    title,
    ground: () => ({ token: `token-${randomWord()}`, found: 0 }),
    guest: (lab, { token }) => lab.attack(name, token, ...more),
    // A result that waits for the survivor would be a timeout.
    options: () => (outcome === 'timeout' ? { timeoutMs: Math.min(patience(700), 2500), gracePeriodMs: 100 } : { timeoutMs: patience(20_000) }),
    outcomes: [outcome],
    escaped(attempt: Attempt, ground) {
      if (attempt.result !== null) ground.found = survivors(ground.token).length;
      return ground.found > 0;
    },
    check({ result }) {
      if (outcome === 'exit') expect(result?.durationMs).toBeLessThan(patience(10_000));
    },
    control: {
      down: 'outside any sandbox',
      async run(guest, _options, ground) {
        ground.found = await survivorsOutside(guest, ground.token, more.length > 0);
        return { verdict: null, words: `${ground.found} survivors`, stdout: '', exitCode: null, result: null };
      },
    },
  });
}

attackClass({ name: 'survivors', program: 'survivors.c', flags: ['-pthread'], besideFilter: true }, [
  trick('plain', 'A child that waits does not outlive the run'),
  trick('double-fork', 'A grandchild without a parent does not outlive the run'),
  trick('new-session', 'A daemon does not outlive the run'),
  trick('new-group', 'A child in a process group of its own does not outlive the run'),
  trick('closed-streams', 'A child that has closed its streams does not outlive the run'),
  trick('ignored-signals', 'A child that ignores every signal does not outlive the run'),
  trick('blocked-signals', 'A child that blocks every signal does not outlive the run'),
  trick('stopped', 'A child that has stopped itself does not outlive the run'),
  trick('all-stopped', 'A tree that has stopped itself as a whole does not outlive its deadline', 'timeout'),
  trick('holds-stdout', 'A child that holds standard output open does not outlive the run, nor delay its result'),
  trick('reopened-streams', 'A child in a new session that opens the streams again does not outlive the run, nor delay its result'),
  trick('no-death-signal', 'A child that has turned its death signal off and reaps its own does not outlive the run'),
  trick('hanging-vfork', 'A parent that hangs in vfork does not outlive the run'),
  trick('traced', 'A child that is traced and stopped does not outlive the run'),
  trick('headless', 'A process whose first thread is gone does not outlive the run'),
  trick('hydra', 'A chain of processes that never stay the same does not outlive the run'),
  trick('from-memory', 'A program that runs from memory does not outlive the run'),
  trick('double-fork', 'A grandchild does not outlive a deadline that the guest ignores', 'timeout', ['stay']),
  trick('new-session', 'A daemon does not outlive a deadline that the guest ignores', 'timeout', ['stay']),
  trick('hydra', 'A chain of processes does not outlive a deadline that the guest ignores', 'timeout', ['stay']),
]);
