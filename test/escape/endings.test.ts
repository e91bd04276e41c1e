import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';

import { patience, whereAmI } from '../support/lane.js';
import { leftovers, newLeftovers } from '../support/leftovers.js';
import { readProcesses } from '../support/processes.js';
import { attack, attackClass } from './support/attack.js';
import type { Attempt, Carried, Guest, Options } from './support/attack.js';
import { childHost, hostEnvironment } from './support/child-host.js';
import { randomWord } from './support/lab.js';
import type { Lab } from './support/lab.js';
import { endQuietly, survivors, survivorsOutside } from './support/survivors.js';

interface Ground {
  token: string;
  found: number;
}

const nothing: Omit<Attempt, 'result'> & { result: null } = { verdict: null, words: '', stdout: '', exitCode: null, result: null };

/** Children of this process that are launchers. */
function launchers(): number[] {
  return readProcesses()
    .filter(({ parent, name, state }) => parent === process.pid && name.startsWith('ringfence-') && state !== 'Z')
    .map(({ pid }) => pid);
}

async function until(holds: () => boolean, milliseconds: number): Promise<boolean> {
  for (const end = performance.now() + milliseconds; performance.now() < end; ) {
    if (holds()) return true;
    await sleep(20);
  }
  return holds();
}

/** A daemon and its guest that go on, and whoever started them ended by `end`. */
function ended(title: string, about: { end(guest: Guest, options: Options, ground: Ground, lab: Lab): Promise<Attempt> }): Carried {
  return attack({
    title,
    ground: (): Ground => ({ token: `token-${randomWord()}`, found: 0 }),
    guest: (lab, { token }) => lab.attack('new-session', token, 'stay'),
    options: () => ({ timeoutMs: patience(30_000) }),
    outcomes: ['spawn-error', 'canceled', 'timeout'],
    async inside(guest, options, ground, lab) {
      const before = leftovers();
      const attempt = await about.end(guest, options, ground, lab);
      ground.found = survivors(ground.token).length;
      expect(newLeftovers({ ...before, temporary: [], descriptors: [] }, { ...leftovers(), temporary: [], descriptors: [] })).toEqual({});
      return attempt;
    },
    escaped: (_attempt, { found }) => found > 0,
    control: {
      down: 'started by a shell that is killed, without a sandbox',
      async run({ command, args }, _options, ground) {
        ground.found = await survivorsOutside({ command: 'sh', args: ['-c', '"$0" "$@" & wait', command, ...args] }, ground.token, true);
        return { ...nothing, words: `${ground.found} survivors` };
      },
    },
  });
}

attackClass({ name: 'deaths of launcher and host', program: 'survivors.c', flags: ['-pthread'], besideFilter: true }, [
  ended('Nothing outlives a launcher that is killed while the guest runs', {
    async end(guest, options, { token }, lab) {
      const run = lab.sandbox(guest, options);
      expect(await until(() => survivors(token, 1).length > 1, patience(10_000))).toBe(true);
      for (const pid of launchers()) endQuietly(pid);
      const attempt = await run;
      expect(attempt.result?.error?.code).toBe('launcher-died');
      return attempt;
    },
  }),
  ended('Nothing outlives a launcher that is killed while it sets the sandbox up', {
    async end(guest, options, _ground, lab) {
      let attempt: Attempt = nothing;
      for (let round = 0; round < 15; round++) {
        const run = lab.sandbox(guest, { ...options, timeoutMs: patience(1000), gracePeriodMs: 10 });
        await until(() => launchers().length > 0, 1000);
        await sleep(randomInt(6));
        for (const pid of launchers()) endQuietly(pid);
        attempt = await run;
      }
      return attempt;
    },
  }),
  ended('Nothing outlives a run that is given up while its sandbox is set up', {
    async end(guest, options, _ground, lab) {
      let attempt: Attempt = nothing;
      for (let round = 0; round < 25; round++) {
        const signal = AbortSignal.timeout(randomInt(patience(20)));
        attempt = await lab.sandbox(guest, { ...options, signal, gracePeriodMs: 0 });
        expect(attempt.result?.outcome).toBe('canceled');
      }
      return attempt;
    },
  }),
  ended('Nothing outlives a launcher that was stopped from outside, once the deadline is over', {
    async end(guest, options, { token }, lab) {
      const run = lab.sandbox(guest, { ...options, timeoutMs: patience(1000), gracePeriodMs: 10 });
      await until(() => survivors(token, 1).length > 1, patience(900));
      for (const pid of launchers()) process.kill(pid, 'SIGSTOP');
      return run;
    },
  }),
  ended('Nothing outlives a host that is killed at any moment', {
    async end({ command, args }, _options, { token }, lab) {
      const work = childHost({ runs: [{ command, args, timeoutMs: patience(400), gracePeriodMs: 10, filesystem: { read: [lab.program] } }], forever: true, concurrency: 4 });
      for (let round = 0; round < (whereAmI().uml ? 2 : 5); round++) {
        const host = spawn(work.command, work.args, { detached: true, stdio: ['ignore', 'ignore', 'inherit'], env: hostEnvironment() });
        // Once the first of its runs is there, at any moment of the next ones.
        expect(await until(() => survivors(token, 1).length > 0, patience(10_000))).toBe(true);
        await sleep(randomInt(patience(800)));
        host.kill('SIGKILL');
        await once(host, 'exit');
        const left = (): string[] => {
          const { processes, cgroups } = leftovers([host.pid ?? 0]);
          return [...processes, ...cgroups];
        };
        // A launcher that had only just started makes its cgroup after its host's death, and then removes it.
        let quietSince = performance.now();
        await until(() => {
          if (left().length > 0) quietSince = performance.now();
          return performance.now() - quietSince > patience(300);
        }, patience(10_000));
        expect(left()).toEqual([]);
      }
      return nothing;
    },
  }),
]);
