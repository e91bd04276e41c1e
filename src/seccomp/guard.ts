import { ENOSYS, ERRNO, KILL_PROCESS, strictness } from './actions.js';
import { CALLS } from './generated/calls.js';
import type { Architecture, Profile } from './profile.js';
import { JUMP_EQ, JUMP_GE, JUMP_GT, ProgramBuilder } from './program.js';
import type { Instruction, Label } from './program.js';

/** linux/audit.h */
export const AUDIT_ARCH: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** `struct seccomp_data`: where the number and the architecture are. */
const NUMBER = 0;
const ARCHITECTURE = 4;

/** Set in the number of an x32 call, which comes with x86-64's architecture. */
const X32_BIT = 0x40000000;

/**
 * Finishes a program with what no profile says. Foreign architectures are killed. The x32 range gets ENOSYS, as from a
 * kernel without it. Where the default is an errno, so do numbers that no call has and, as in runc, those above the
 * highest that the profile names: libc falls back on ENOSYS only. `onNumber` finds the call's number loaded.
 */
export function guard(builder: ProgramBuilder, onNumber: Label, profile: Profile, architecture: Architecture): Instruction[] {
  const enosys = () => builder.answer(ERRNO | ENOSYS);
  let next = onNumber;
  if (strictness(profile.defaultAction) === strictness(ERRNO)) {
    const numbers = CALLS[architecture];
    const highest = Math.max(0, ...profile.rules.flatMap(({ names }) => names.map((name) => numbers.get(name) ?? 0)));
    for (const { first, last } of gaps(new Set(numbers.values()), highest))
      next = builder.branch(JUMP_GE, first, builder.branch(JUMP_GT, last, next, enosys()), next);
    next = builder.branch(JUMP_GT, highest, enosys(), next);
  } else if (architecture === 'x64') {
    next = builder.branch(JUMP_GE, X32_BIT, enosys(), next);
  }
  const native = builder.load(NUMBER, next);
  return builder.finish(builder.load(ARCHITECTURE, builder.branch(JUMP_EQ, AUDIT_ARCH[architecture], native, builder.answer(KILL_PROCESS))));
}

/** The same in front of a program that libseccomp made of the profile, and that loads by itself what it looks at. */
export function guardProgram(program: readonly Instruction[], profile: Profile, architecture: Architecture): Instruction[] {
  const builder = new ProgramBuilder(program);
  return guard(builder, builder.tail, profile, architecture);
}

function gaps(numbers: ReadonlySet<number>, highest: number): { first: number; last: number }[] {
  const found: { first: number; last: number }[] = [];
  for (let number = 0; number <= highest; number++) {
    if (numbers.has(number)) continue;
    const before = found.at(-1);
    if (before?.last === number - 1) before.last = number;
    else found.push({ first: number, last: number });
  }
  return found;
}
