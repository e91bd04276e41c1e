import { strictness } from './actions.js';
import type { Condition } from './condition.js';
import { CALLS, KNOWN_NAMES } from './generated/calls.js';
import { guard } from './guard.js';
import type { Architecture, Profile, Rule } from './profile.js';
import { JUMP_EQ, JUMP_GE, JUMP_GT, MAX_INSTRUCTIONS, ProgramBuilder } from './program.js';
import type { Instruction, Label } from './program.js';

/** Where `struct seccomp_data` has the arguments, 8 bytes each. */
const ARGUMENTS = 16;

/** What a compiled profile is, and what of it had no effect here. */
export interface Compiled {
  program: Instruction[];
  /** Names that no architecture known to ringfence has, in rules that would have opened them: they stay shut. */
  unknownNames: string[];
}

/** One call: its rules, strictest first, and what is answered when none matches. */
interface Decision {
  rules: Rule[];
  otherwise: number;
}

/** Numbers from `first` on, up to the next range, with one decision. */
interface Range {
  first: number;
  decision: Decision;
}

/**
 * Compiles a profile for one architecture. Of several rules that match a call the strictest decides, whatever their
 * order (libseccomp drops a conditional refusal beside an unconditional permission, and says nothing). Throws a
 * TypeError for an unknown call in a rule that is stricter than the default, and for a program that is too long.
 */
export function compileProfile(profile: Profile, architecture: Architecture): Compiled {
  const { decisions, unknownNames } = collect(profile, architecture);
  const builder = new ProgramBuilder();
  const onNumber = search(builder, toRanges(decisions, profile.defaultAction));
  const program = guard(builder, onNumber, profile, architecture);
  if (program.length > MAX_INSTRUCTIONS)
    throw new TypeError(`compiles to ${program.length} instructions; the kernel takes ${MAX_INSTRUCTIONS}`);
  return { program, unknownNames };
}

function collect(profile: Profile, architecture: Architecture): { decisions: Map<number, Decision>; unknownNames: string[] } {
  const numbers = CALLS[architecture];
  const decisions = new Map<number, Decision>();
  const unknownNames = new Set<string>();
  for (const rule of profile.rules) {
    for (const name of rule.names) {
      const number = numbers.get(name);
      if (number !== undefined) {
        const decision = decisions.get(number) ?? { rules: [], otherwise: profile.defaultAction };
        decisions.set(number, decision);
        // What says the default again is no rule, as in runc: it must not outdo a more lenient one.
        if (rule.action !== profile.defaultAction) decision.rules.push(rule);
      } else if (!KNOWN_NAMES.has(name)) {
        if (strictness(rule.action) > strictness(profile.defaultAction))
          throw new TypeError(`restricts ${name}, which is no system call known to ringfence`);
        unknownNames.add(name);
      }
    }
  }
  for (const decision of decisions.values()) settle(decision);
  return { decisions, unknownNames: [...unknownNames] };
}

/** Strictest first; what comes after a rule without conditions can never be reached. */
function settle(decision: Decision): void {
  const ordered = decision.rules.toSorted((a, b) => strictness(b.action) - strictness(a.action));
  const certain = ordered.findIndex((rule) => rule.conditions.length === 0);
  decision.otherwise = ordered[certain]?.action ?? decision.otherwise;
  decision.rules = certain < 0 ? ordered : ordered.slice(0, certain);
}

function toRanges(decisions: Map<number, Decision>, defaultAction: number): Range[] {
  const highest = Math.max(-1, ...decisions.keys());
  const unlisted: Decision = { rules: [], otherwise: defaultAction };
  const ranges: Range[] = [];
  for (let number = 0; number <= highest + 1; number++) {
    const decision = decisions.get(number) ?? unlisted;
    const last = ranges.at(-1)?.decision;
    const same = last && last.rules.length === 0 && decision.rules.length === 0 && last.otherwise === decision.otherwise;
    if (!same) ranges.push({ first: number, decision });
  }
  return ranges;
}

/** A balanced tree over the ranges; the call's number is in the accumulator. */
function search(builder: ProgramBuilder, ranges: Range[]): Label {
  const [range] = ranges;
  if (ranges.length === 1 && range) return decide(builder, range.decision);
  const middle = ranges.length >> 1;
  const upper = search(builder, ranges.slice(middle));
  const lower = search(builder, ranges.slice(0, middle));
  return builder.branch(JUMP_GE, ranges[middle]?.first ?? 0, upper, lower);
}

function decide(builder: ProgramBuilder, decision: Decision): Label {
  let next = builder.answer(decision.otherwise);
  for (const rule of decision.rules.toReversed()) {
    let matched = builder.answer(rule.action);
    for (const condition of rule.conditions.toReversed()) matched = compare(builder, condition, matched, next);
    next = matched;
  }
  return next;
}

/** Both halves of the argument count: a filter that looks at one can be passed by way of the other. */
function compare(builder: ProgramBuilder, condition: Condition, yes: Label, no: Label): Label {
  const { index, comparison, value, valueTwo } = condition;
  const lowAt = ARGUMENTS + index * 8;
  const low = Number(value & 0xffffffffn);
  const high = Number(value >> 32n);
  const equalHigh = (then: Label, otherwise: Label) => builder.load(lowAt + 4, builder.branch(JUMP_EQ, high, then, otherwise));
  const ordered = (code: number, then: Label, otherwise: Label) => {
    const onLow = builder.load(lowAt, builder.branch(code, low, then, otherwise));
    const notAbove = builder.branch(JUMP_EQ, high, onLow, otherwise);
    return builder.load(lowAt + 4, builder.branch(JUMP_GT, high, then, notAbove));
  };
  switch (comparison) {
    case 'SCMP_CMP_EQ':
      return equalHigh(builder.load(lowAt, builder.branch(JUMP_EQ, low, yes, no)), no);
    case 'SCMP_CMP_NE':
      return equalHigh(builder.load(lowAt, builder.branch(JUMP_EQ, low, no, yes)), yes);
    case 'SCMP_CMP_GE':
      return ordered(JUMP_GE, yes, no);
    case 'SCMP_CMP_GT':
      return ordered(JUMP_GT, yes, no);
    case 'SCMP_CMP_LT':
      return ordered(JUMP_GE, no, yes);
    case 'SCMP_CMP_LE':
      return ordered(JUMP_GT, no, yes);
    case 'SCMP_CMP_MASKED_EQ':
      return masked(builder, lowAt + 4, high, Number(valueTwo >> 32n), masked(builder, lowAt, low, Number(valueTwo & 0xffffffffn), yes, no), no);
  }
}

function masked(builder: ProgramBuilder, offset: number, mask: number, rest: number, yes: Label, no: Label): Label {
  if (mask === 0) return yes;
  const compared = builder.branch(JUMP_EQ, rest, yes, no);
  return builder.load(offset, mask === 0xffffffff ? compared : builder.and(mask, compared));
}
