import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';

import type { Outcome } from '../../src/index.js';
import { patience } from '../support/lane.js';
import { attack, attackClass } from './support/attack.js';
import type { Attempt, Carried, Guest } from './support/attack.js';
import { randomWord } from './support/lab.js';

/** The processes of this machine that have the token in their command line. */
function survivors(token: string, looks = 3): number[] {
  // One that ends while another takes its place can be missed by a single look.
  const found = numbersIn('/proc').filter((pid) => isOf(pid, token));
  return found.length > 0 || looks === 1 ? found : survivors(token, looks - 1);
}

/** A process whose first thread has ended has a command line only in the others. */
function isOf(pid: number, token: string): boolean {
  try {
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    if (commandLine !== '') return commandLine.includes(token);
    return numbersIn(`/proc/${pid}/task`).some((thread) => readFileSync(`/proc/${pid}/task/${thread}/cmdline`, 'utf8').includes(token));
  } catch {
    return false; // ENOENT or ESRCH: gone meanwhile
  }
}

function numbersIn(directory: string): number[] {
  return readdirSync(directory).filter((entry) => /^\d+$/.test(entry)).map(Number);
}

/** Without a sandbox, in a session of its own, by which the rest is ended afterwards. */
async function survivorsOutside({ command, args }: Guest, token: string): Promise<number> {
  const child = spawn(command, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  await Promise.race([ended, once(child.stdout, 'data'), sleep(1000)]);
  if (args.length > 2) child.kill('SIGKILL');
  await Promise.race([ended, sleep(500)]);
  const found = survivors(token, 30);
  child.stdout.destroy();
  child.stderr.destroy();
  // The group at once, for what never stays the same process; then each that left it.
  endQuietly(-(child.pid ?? 0));
  for (let tries = 0; survivors(token).length > 0 && tries < 200; tries++) {
    for (const pid of [-(child.pid ?? 0), ...survivors(token)]) endQuietly(pid);
    await sleep(10);
  }
  return found.length;
}

function endQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function trick(name: string, title: string, outcome: Outcome = 'exit', more: string[] = []): Carried {
  return attack({
    title,
    ground: () => ({ token: `token-${randomWord()}`, found: 0 }),
    guest: (lab, { token }) => lab.attack(name, token, ...more),
    // A result that waits for the survivor would be a timeout.
    options: () => (outcome === 'timeout' ? { timeoutMs: patience(700), gracePeriodMs: 100 } : { timeoutMs: patience(20_000) }),
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
        ground.found = await survivorsOutside(guest, ground.token);
        return { verdict: null, words: `${ground.found} survivors`, stdout: '', exitCode: null, result: null };
      },
    },
  });
}

attackClass({ name: 'survivors', program: 'survivors.c', flags: ['-pthread'] }, [
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
