import { expect } from 'vitest';

import type { Outcome } from '../../src/index.js';
import { patience } from '../support/lane.js';
import { aloneInside, requiresLandlock } from './support/alone.js';
import { attack, attackClass } from './support/attack.js';
import type { Carried } from './support/attack.js';
import { randomWord } from './support/lab.js';
import { survivors, survivorsOutside } from './support/survivors.js';

/** Init and the launcher are subreapers: what they do not find and kill outlives the run. */
function trick(name: string, title: string, outcome: Outcome = 'exit', more: string[] = []): Carried {
  return attack({
    title,
    ground: () => ({ token: `token-${randomWord()}`, found: 0 }),
    guest: (lab, { token }) => lab.attack(name, token, ...more),
    options: () => (outcome === 'timeout' ? { timeoutMs: 1000, gracePeriodMs: 100 } : { timeoutMs: patience(20_000) }),
    outcomes: [outcome],
    inside: (guest, options, _ground, lab) => aloneInside(guest, options, lab),
    escaped(attempt, ground) {
      if (attempt.result !== null) ground.found = survivors(ground.token).length;
      return ground.found > 0;
    },
    check: ({ result }) => expect(result?.durationMs).toBeLessThan(patience(10_000)),
    control: {
      down: 'outside any sandbox',
      async run(guest, _options, ground) {
        ground.found = await survivorsOutside(guest, ground.token, more.length > 0);
        return { verdict: null, words: `${ground.found} survivors`, stdout: '', exitCode: null, result: null };
      },
    },
    requires: requiresLandlock,
  });
}

attackClass({ name: 'survivors without a pid namespace', program: 'survivors.c', flags: ['-pthread'], besideFilter: true }, [
  trick('plain', 'A child that waits does not outlive the run'),
  trick('double-fork', 'A grandchild without a parent does not outlive the run'),
  trick('new-session', 'A daemon does not outlive the run'),
  trick('ignored-signals', 'A child that ignores every signal does not outlive the run'),
  trick('stopped', 'A child that has stopped itself does not outlive the run'),
  trick('no-death-signal', 'A child that has turned its death signal off and reaps its own does not outlive the run'),
  trick('headless', 'A process whose first thread is gone does not outlive the run'),
  trick('hydra', 'A chain of processes that never stay the same does not outlive the run'),
  trick('double-fork', 'A grandchild does not outlive a deadline that the guest ignores', 'timeout', ['stay']),
  trick('new-session', 'A daemon does not outlive a deadline that the guest ignores', 'timeout', ['stay']),
  trick('hydra', 'A chain of processes does not outlive a deadline that the guest ignores', 'timeout', ['stay']),
]);
