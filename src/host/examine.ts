import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { SandboxOptions } from '../run/options.js';
import type { Fence, FenceReport, SandboxFailure, SandboxResult } from '../run/result.js';
import { NO_LANDLOCK } from '../run/enforcement.js';
import { readCircumstances } from './circumstances.js';
import type { Circumstances } from './circumstances.js';
import type { Finding, Symptom } from './findings.js';
import { explain, hintOf } from './findings.js';

/** What was found out about one thing that a host can or cannot do. */
export interface Ability {
  name: Fence | '/proc' | 'write grants';
  /** As in the result of a run. */
  status: FenceReport['status'];
  /** The mechanism, or the code of the finding that says why there is none. */
  by: string;
}

/** What this host, this account and the place of this process in it can enforce. */
export interface HostReport {
  /** True when strict runs, which is what runs are by default, are possible. */
  strict: boolean;
  abilities: Ability[];
  /** One for each cause, in the order in which they were met. */
  findings: Finding[];
  around: Circumstances;
}

export interface ExamineInput {
  /** A `runSandboxed` that knows nothing of this machine yet. */
  freshRunner(): (options: SandboxOptions) => Promise<SandboxResult>;
  launcher: string | null;
  /** What cgroups lack here, with the remedy for this very place; null where they lack nothing. */
  cgroupProblem: { code: string; hint: string } | null;
}

/** Succeeds, and tells by its exit code whether there is a /proc. */
const PROBE = { command: 'sh', args: ['-c', 'test -d /proc/self'], timeoutMs: 30_000 } as const;

/** Launches a trivial command for real, in a few ways, and says what came of it. */
export async function examine(input: ExamineInput): Promise<HostReport> {
  const around = readCircumstances(input.launcher);
  const strict = await input.freshRunner()({ ...PROBE, isolation: 'strict' });
  const all = await input.freshRunner()({ ...PROBE, isolation: 'best-effort', limits: { cpus: 1 } });
  // What a best-effort run did without it names by a code: what to do about it comes with the error of a strict one.
  const withCpu = all.enforcement.cpu.status === 'unavailable' ? await input.freshRunner()({ ...PROBE, isolation: 'strict', limits: { cpus: 1 } }) : null;
  const symptoms: Symptom[] = [];
  const learn = (code: string, error: SandboxFailure | null): void => {
    if (symptoms.some((known) => known.code === code)) return;
    const own = [error, strict.error, all.error, withCpu?.error].find((each) => each?.code === code) ?? null;
    const hint = own?.hint ?? (input.cgroupProblem?.code === code ? input.cgroupProblem.hint : null);
    symptoms.push({ code, errno: own?.errno ?? null, hint: hintOf(code, hint) });
  };

  const isStrict = strict.outcome === 'exit';
  if (strict.error !== null) learn(strict.error.code, strict.error);
  const abilities = ofFirstCause(fences(all), strict.error?.code ?? null);
  // A second wall that this kernel does not have is no failure.
  for (const { status, by } of abilities) if (status === 'unavailable' && by !== NO_LANDLOCK) learn(by, null);
  if (isStrict) {
    abilities.push(procOf(strict), await writeGrants(input, learn));
    if (strict.exitCode !== 0) learn('proc-masked', null);
  }
  return { strict: isStrict, abilities, findings: [...symptoms.map((symptom) => explain(symptom, around)), ...chosen(around)], around };
}

function fences({ enforcement, outcome, error }: SandboxResult): Ability[] {
  return (Object.keys(enforcement) as Fence[]).map((name) => {
    const { status, by } = enforcement[name];
    if (outcome === 'spawn-error') return { name, status: 'unavailable', by: error?.code ?? by };
    // What is left of a fence that was given up follows its code: "CODE; only …".
    return { name, status, by: status === 'unavailable' ? (by.split(';')[0] ?? by) : by };
  });
}

/** No user namespace to be had, whatever the reason. */
const NO_NAMESPACE: readonly string[] = ['user-namespaces-disabled', 'user-namespaces-forbidden', 'namespaces-unsupported', 'kernel-too-old'];
/** What a launch without one goes on to fail at, and what else it would mean a security module for. */
const WITHOUT_NAMESPACE: readonly string[] = ['user-namespaces-restricted', 'id-map-refused'];

/** A best-effort launch gives up the user namespace and goes on: what then fails has that for a cause. */
function ofFirstCause(abilities: Ability[], strictCode: string | null): Ability[] {
  const codes = [strictCode, ...abilities.filter(({ status }) => status === 'unavailable').map(({ by }) => by)];
  const cause = codes.find((code) => code !== null && NO_NAMESPACE.includes(code));
  if (cause === undefined || cause === null) return abilities;
  return abilities.map((ability) => (WITHOUT_NAMESPACE.includes(ability.by) ? { ...ability, by: cause } : ability));
}

function procOf({ exitCode }: SandboxResult): Ability {
  return exitCode === 0
    ? { name: '/proc', status: 'enforced', by: "the sandbox's own, masked" }
    : { name: '/proc', status: 'unavailable', by: 'proc-masked' };
}

/** A root host lends its directories to another account, which takes a mount that not every file system has. */
async function writeGrants(input: ExamineInput, learn: (code: string, error: SandboxFailure | null) => void): Promise<Ability> {
  const name = 'write grants';
  const directory = await mkdtemp(join(tmpdir(), 'ringfence-doctor-'));
  try {
    const { outcome, error } = await input.freshRunner()({ ...PROBE, cwd: directory });
    if (outcome === 'exit') return { name, status: 'enforced', by: process.geteuid?.() === 0 ? 'idmapped mount' : 'bind mount' };
    const code = error?.code ?? outcome;
    learn(code, error);
    return { name, status: 'unavailable', by: code };
  } finally {
    await rmdir(directory);
  }
}

/** What is down because somebody wants it so: no failure, but nobody should be in doubt about it. */
function chosen({ networkToggle }: Circumstances): Finding[] {
  if (networkToggle !== '1') return [];
  return [
    {
      code: 'network-fence-disabled',
      cause: 'SANDBOX_DISABLE_NETNS_FIREWALL is 1: what runs here shares the network of this machine',
      remedies: ['unset SANDBOX_DISABLE_NETNS_FIREWALL'],
    },
  ];
}
