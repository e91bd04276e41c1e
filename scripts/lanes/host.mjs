/** The lanes on this machine's own kernel: as who we are, and from root as an ordinary user with delegated cgroups. */
import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execa, execaSync } from 'execa';
import { delegateCgroups } from './cgroups.mjs';
import { deadlineMs, watchProgress } from './progress.mjs';
import { makeScratch } from './scratch.mjs';
import { copyTree, ordinaryUid, projectRoot } from './tree.mjs';
import { readJournal, vitestCommand } from './vitest.mjs';

const become = ['setpriv', '--reuid', `${ordinaryUid}`, '--regid', `${ordinaryUid}`, '--clear-groups', '--inh-caps=-all'];

/** @type {import('./lanes.mjs').Lane['run']} */
export async function runAsSelf({ filters, signal }) {
  const directory = makeScratch(os.tmpdir());
  const journal = path.join(directory, 'journal');
  try {
    const [program, ...args] = vitestCommand({ project: projectRoot, journal, filters });
    const outcome = await run(program, args, { cwd: projectRoot, journal, signal });
    return { ...outcome, tests: readJournal(journal) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** @type {import('./lanes.mjs').Lane['run']} */
export async function runAsOrdinaryUser({ filters, signal }) {
  const directory = makeScratch(reachableTemporary());
  const [project, home, temporary] = ['project', 'home', 'tmp'].map((name) => path.join(directory, name));
  const journal = path.join(directory, 'home', 'journal');
  let cgroups;
  try {
    chmodSync(directory, 0o755);
    for (const each of [project, home, temporary]) {
      mkdirSync(each);
      chownSync(each, ordinaryUid, ordinaryUid);
    }
    await copyTree({ directory: project, uid: ordinaryUid, signal });
    cgroups = delegateCgroups(ordinaryUid);
    const join = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 1; shift; done; shift; exec "$@"';
    const command = [...become, '--pdeathsig', 'KILL', ...vitestCommand({ project, journal, filters })];
    const env = { HOME: home, TMPDIR: temporary, USER: undefined, LOGNAME: undefined, ...cgroups.env };
    const outcome = await run('sh', ['-c', join, 'sh', ...cgroups.join, '--', ...command], { cwd: project, env, journal, signal });
    return { ...outcome, tests: readJournal(journal) };
  } finally {
    await cgroups?.remove();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Why the ordinary user cannot have this lane here, or null. */
export function ordinaryUserMissing() {
  if (!reachable(process.execPath)) return `${process.execPath} cannot be reached by other users`;
  return null;
}

/** A temporary directory may be private to root, as the project's own directory may be. */
function reachableTemporary() {
  return [os.tmpdir(), '/tmp', '/var/tmp'].find(reachable) ?? '/tmp';
}

function reachable(file) {
  const { exitCode } = execaSync('setpriv', [...become.slice(1), 'test', '-x', file], { reject: false });
  return exitCode === 0;
}

// These lanes run alone: the terminal is theirs.
async function run(program, args, { cwd, env, journal, signal }) {
  const progress = watchProgress(journal);
  const either = AbortSignal.any([signal, progress.signal]);
  const result = await execa(program, args, {
    cwd, env, stdin: 'ignore', stdout: 'inherit', stderr: 'inherit', reject: false, cancelSignal: either,
    timeout: deadlineMs, forceKillAfterDelay: 10_000,
  });
  progress.stop();
  const faults = [
    either.aborted && either.reason.message,
    result.timedOut && `stopped at its deadline of ${deadlineMs / 1000} s`,
    result.signal && `vitest was ended by ${result.signal}`,
  ];
  return { exitCode: result.exitCode ?? null, fault: faults.find(Boolean) ?? null };
}
