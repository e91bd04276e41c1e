import { z } from 'zod';
import { ACTIONS, EPERM, ERRNO, REFUSED_ACTIONS } from './actions.js';
import type { ActionName } from './actions.js';
import { COMPARISONS } from './condition.js';
import type { Comparison, Condition } from './condition.js';

export type Architecture = 'x64' | 'arm64';

/** Where a profile is meant to apply: what its `includes` and `excludes` are asked about. */
export interface Target {
  architecture: Architecture;
  /** As of `os.release()`; only major and minor count. */
  kernel: string;
}

/** All conditions must hold. Without any, the rule is about every call of these names. */
export interface Rule {
  names: string[];
  action: number;
  conditions: Condition[];
}

/** A profile for one target, its actions as the kernel's numbers. */
export interface Profile {
  defaultAction: number;
  rules: Rule[];
}

const ARCHITECTURES: Record<Architecture, { scmp: string; go: string }> = {
  x64: { scmp: 'SCMP_ARCH_X86_64', go: 'amd64' },
  arm64: { scmp: 'SCMP_ARCH_AARCH64', go: 'arm64' },
};

const U64_MAX = 2n ** 64n - 1n;
const MAX_ERRNO = 4095;

const word = z
  .union([z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER), z.string().regex(/^\d{1,20}$/)])
  .transform((value) => BigInt(value))
  .refine((value) => value <= U64_MAX);
const errnoNumber = z.number().int().min(0).max(MAX_ERRNO);
const actionName = z.enum(Object.keys(ACTIONS) as [ActionName, ...ActionName[]]);
const argument = z.strictObject({
  index: z.number().int().min(0).max(5),
  value: word,
  valueTwo: word.default(0n),
  op: z.enum(Object.keys(COMPARISONS) as [Comparison, ...Comparison[]]),
});
const scope = z.strictObject({
  caps: z.array(z.string()).nullish(),
  arches: z.array(z.string()).nullish(),
  minKernel: z.string().regex(/^\d+\.\d+$/).nullish(),
});
const syscallRule = z.strictObject({
  names: z.array(z.string().min(1)).min(1),
  action: actionName,
  errnoRet: errnoNumber.nullish(),
  errno: z.string().nullish(),
  args: z.array(argument).nullish(),
  comment: z.string().nullish(),
  includes: scope.nullish(),
  excludes: scope.nullish(),
});
const document = z.strictObject({
  defaultAction: actionName,
  defaultErrnoRet: errnoNumber.nullish(),
  defaultErrno: z.string().nullish(),
  architectures: z.array(z.string()).nullish(),
  archMap: z.array(z.strictObject({ architecture: z.string(), subArchitectures: z.array(z.string()).nullish() })).nullish(),
  flags: z.array(z.string()).max(0).nullish(),
  syscalls: z.array(syscallRule).nullish(),
});
type Scope = z.output<typeof scope>;
type SyscallRule = z.output<typeof syscallRule>;

/**
 * Reads a profile in the OCI format, or in the form of it that Docker and podman keep, with `archMap`, `includes` and
 * `excludes`; a guest holds no capability, so what is included for one is left out. Throws a TypeError that names the
 * place and what was expected there. Nothing is skipped: a key or an action that would have no effect is an error.
 */
export function parseProfile(text: string, target: Target): Profile {
  const parsed = document.safeParse(readJson(text));
  if (!parsed.success) throw new TypeError(describe(parsed.error.issues[0]));
  const { defaultAction, defaultErrnoRet, architectures, archMap, syscalls } = parsed.data;
  const wanted = ARCHITECTURES[target.architecture].scmp;
  const named = [...(architectures ?? []), ...(archMap ?? []).flatMap((entry) => [entry.architecture, ...(entry.subArchitectures ?? [])])];
  if (named.length > 0 && !named.includes(wanted)) throw new TypeError(`does not cover ${wanted}, which this machine is`);
  const rules = (syscalls ?? [])
    .map((rule, position) => ({ rule, place: `syscalls[${position}]` }))
    .filter(({ rule }) => applies(rule.includes ?? {}, rule.excludes ?? {}, target))
    .map(({ rule, place }) => toRule(rule, place));
  return { defaultAction: actionValue(defaultAction, defaultErrnoRet, 'defaultErrnoRet'), rules };
}

/** JSON.parse rounds integers beyond 2^53; those become strings, which `word` takes. */
function readJson(text: string): unknown {
  const exact = text.replace(/"(?:[^"\\]|\\.)*"|\b\d{16,}\b/g, (token) => (token.startsWith('"') ? token : `"${token}"`));
  try {
    return JSON.parse(exact) as unknown;
  } catch (cause) {
    throw new TypeError('is not JSON', { cause });
  }
}

function applies(includes: Scope, excludes: Scope, target: Target): boolean {
  const { go } = ARCHITECTURES[target.architecture];
  if ((includes.caps ?? []).length > 0) return false;
  if ((includes.arches ?? []).length > 0 && !includes.arches?.includes(go)) return false;
  if (includes.minKernel && !isAtLeast(target.kernel, includes.minKernel)) return false;
  if (excludes.arches?.includes(go)) return false;
  return !(excludes.minKernel && isAtLeast(target.kernel, excludes.minKernel));
}

function isAtLeast(kernel: string, minimum: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10));
  const [wantedMajor = 0, wantedMinor = 0] = minimum.split('.').map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

function toRule(rule: SyscallRule, place: string): Rule {
  const args = rule.args ?? [];
  for (const [position, arg] of args.entries()) {
    if (args.findIndex((other) => other.index === arg.index) !== position)
      throw new TypeError(`${place}.args names argument ${arg.index} twice: write one rule for each`);
    if (arg.op === 'SCMP_CMP_MASKED_EQ' && (arg.valueTwo & ~arg.value) !== 0n)
      throw new TypeError(`${place}.args[${position}] can never match: valueTwo has bits outside the mask in value`);
  }
  return {
    names: rule.names,
    action: actionValue(rule.action, rule.errnoRet, `${place}.errnoRet`),
    conditions: args.map(({ index, value, valueTwo, op }) => ({ index, value, valueTwo, comparison: op })),
  };
}

function actionValue(name: ActionName, errno: number | null | undefined, place: string): number {
  if (ACTIONS[name] === ERRNO) return ERRNO | (errno ?? EPERM);
  if (errno !== null && errno !== undefined) throw new TypeError(`${place} has no meaning for ${name}`);
  return ACTIONS[name];
}

function describe(issue: z.core.$ZodIssue | undefined): string {
  if (!issue) return 'is not a seccomp profile';
  const place = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('').replace(/^\./, '');
  if (issue.code === 'unrecognized_keys') return `${[place, issue.keys[0]].filter(Boolean).join('.')} is not supported`;
  const last = issue.path.at(-1);
  if (last === 'action' || last === 'defaultAction')
    return `${place} must be one of ${Object.keys(ACTIONS).join(', ')} (${REFUSED_ACTIONS.join(' and ')} need a supervisor)`;
  if (last === 'op') return `${place} must be one of ${Object.keys(COMPARISONS).join(', ')}`;
  if (last === 'value' || last === 'valueTwo') return `${place} must be an integer from 0 to 2^64-1`;
  if (last === 'errnoRet' || last === 'defaultErrnoRet') return `${place} must be an integer from 0 to ${MAX_ERRNO}`;
  if (last === 'flags') return `${place} must be empty: the launcher chooses the filter's flags`;
  return place === '' ? 'must be an object in OCI seccomp format' : `${place} has the wrong type or is missing`;
}
