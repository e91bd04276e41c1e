/** The form of every escape test: one program, run inside, where it must fail, and once more with one fence down. */
import { release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { TestContext } from 'vitest';

import type { Outcome, SandboxOptions, SandboxResult } from '../../../src/index.js';
import { whereAmI } from '../../support/lane.js';
import { Lab } from './lab.js';

declare module 'vitest' {
  interface TaskMeta {
    /** For the table in README (scripts/lanes/attack-table.mjs). */
    attack?: { class: string; account: 'root' | 'user'; cgroup: 1 | 2 | null; kernel: string; open: string | null };
  }
}

/** A command as the guest. Its last line on stdout says `ESCAPED …` or `HELD …`. */
export interface Guest {
  command: string;
  args: string[];
  stdin?: string;
}

/** What one run of the guest came to. */
export interface Attempt {
  verdict: 'escaped' | 'held' | null;
  /** The verdict line, or what else the guest said. */
  words: string;
  stdout: string;
  exitCode: number | null;
  /** null outside a sandbox. */
  result: SandboxResult | null;
}

export type Options = Partial<Omit<SandboxOptions, 'command' | 'args'>> & {
  /** Without the second wall too; without namespaces it is the first, and stays. */
  landlock?: false;
};

/** A filter that lets every call through. */
export const noFilter = { seccomp: { profile: fileURLToPath(new URL('../../fixtures/escape/no-filter.json', import.meta.url)) } } satisfies Options;

/** Neither the filter nor Landlock, which would stand in for another fence. */
export const firstWallOnly: Options = { ...noFilter, landlock: false };

export interface Control<Ground> {
  /** Which fence is down, and how. */
  down: string;
  /** Its options are `firstWallOnly`. */
  run(guest: Guest, options: Options, ground: Ground, lab: Lab): Promise<Attempt>;
}

export interface Attack<Ground> {
  /** A sentence about what cannot be done. */
  title: string;
  /** What this attack needs on the host side, made anew for the attempt and for its control. */
  ground?(lab: Lab): Ground | Promise<Ground>;
  guest(lab: Lab, ground: NoInfer<Ground>): Guest;
  /** Of the attempt inside; the control may change them. */
  options?(ground: NoInfer<Ground>): Options;
  /** Nothing but the system-call filter refuses this. Else the attack is made again with `firstWallOnly`. */
  filterOnly?: boolean;
  /** A known gap: why the attack succeeds still. Once it fails, this has to go. */
  open?: string;
  /** How the attempt is made. Default: `lab.sandbox`. */
  inside?(guest: Guest, options: Options, ground: NoInfer<Ground>, lab: Lab): Promise<Attempt>;
  control: Control<NoInfer<Ground>>;
  /** Whether the attack has succeeded. Default: the guest's own verdict. */
  escaped?(attempt: Attempt, ground: NoInfer<Ground>): boolean | Promise<boolean>;
  /** How the run inside may end. Default: only by itself. */
  outcomes?: Outcome[];
  /** More to be seen of the attempt inside. */
  check?(attempt: Attempt, ground: NoInfer<Ground>): void | Promise<void>;
  /** Skips where the attack, or its control, cannot be carried out at all (test/support/skip.ts). */
  requires?(context: TestContext, lab: Lab): void | Promise<void>;
}

export interface ClassOfAttacks {
  /** As README's table calls it. */
  name: string;
  /** The C program below test/fixtures/escape that holds the attacks. */
  program: string;
  flags?: string[];
  /** Attacks that the system-call filter has nothing to do with: made once, with it. */
  besideFilter?: boolean;
}

/** An attack with its ground's type forgotten, so that different ones fit into one list. */
export interface Carried {
  title: string;
  open: string | null;
  carryOut(context: TestContext, about: ClassOfAttacks): Promise<void>;
}

export function attack<Ground>(each: Attack<Ground>): Carried {
  return {
    title: each.title,
    open: each.open ?? null,
    async carryOut(context, about) {
      const lab = new Lab(about);
      await each.requires?.(context, lab);
      await expectHeld(each, lab, {});
      // The filter and Landlock refuse much of what another fence has to hold too: each must stand by itself.
      const slow = whereAmI().uml; // what the other lanes have shown, and a lane has its deadline
      const again = about.besideFilter !== true && each.filterOnly !== true && each.open === undefined && !slow;
      if (again) await expectHeld(each, lab, firstWallOnly);
      await expectControl(each, lab);
    },
  };
}

/** One file's attacks. */
export function attackClass(about: ClassOfAttacks, attacks: readonly Carried[]): void {
  describe(about.name, () => {
    for (const { title, open, carryOut } of attacks) {
      it(open === null ? title : `KNOWN GAP: ${title}`, { retry: 0 }, async (context) => {
        const { root, cgroup } = whereAmI();
        context.task.meta.attack = { class: about.name, account: root ? 'root' : 'user', cgroup, kernel: release().split('-')[0] ?? '', open };
        await carryOut(context, about);
      });
    }
  });
}

async function expectHeld<Ground>(each: Attack<Ground>, lab: Lab, more: Options): Promise<void> {
  const ground = (await each.ground?.(lab)) as Ground;
  const guest = each.guest(lab, ground);
  const options = { ...each.options?.(ground), ...more };
  const attempt = await (each.inside?.(guest, options, ground, lab) ?? lab.sandbox(guest, options));
  const { result } = attempt;
  if (result !== null) expect(each.outcomes ?? ['exit'], about(attempt)).toContain(result.outcome);
  const escaped = await (each.escaped?.(attempt, ground) ?? attempt.verdict === 'escaped');
  if (each.open !== undefined) return expect(escaped, `it is closed now, and still called a known gap (${each.open})`).toBe(true);
  expect(escaped, `it escaped${more === firstWallOnly ? ' without the filter and Landlock' : ''}: ${attempt.words}`).toBe(false);
  // A guest that broke off before its attack proves nothing.
  if (each.escaped === undefined && (result?.outcome ?? 'exit') === 'exit') expect(attempt.verdict, about(attempt)).toBe('held');
  await each.check?.(attempt, ground);
}

async function expectControl<Ground>(each: Attack<Ground>, lab: Lab): Promise<void> {
  const ground = (await each.ground?.(lab)) as Ground;
  const attempt = await each.control.run(each.guest(lab, ground), { ...each.options?.(ground), ...firstWallOnly }, ground, lab);
  const escaped = await (each.escaped?.(attempt, ground) ?? attempt.verdict === 'escaped');
  expect(escaped, `the control (${each.control.down}) must succeed: ${about(attempt)}`).toBe(true);
}

function about({ words, exitCode, result }: Attempt): string {
  const stderr = result?.stderr ?? '';
  return `${result?.outcome ?? 'outside'} ${exitCode} ${result?.errorMessage ?? ''} ${words} ${stderr}`.slice(0, 2000);
}
