/**
 * A machine with cgroup v2 on any Linux host: User-Mode Linux, a kernel that runs as an ordinary process.
 *
 * Its root is the host's file system, read-only. /tmp is an ext4 image of its own with a copy of this project in
 * /tmp/project; what a command leaves in /run/exchange reaches the host.
 *
 *   node scripts/lanes/uml.mjs [--user] [--seconds N] -- command args…     run one command in there
 */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { abortOnSignals } from './interrupt.mjs';
import { makeScratch } from './scratch.mjs';
import { copyTree, ordinaryUid } from './tree.mjs';

const gibibyte = 2 ** 30;
const searchPath = [process.env.PATH, '/usr/sbin', '/sbin'].join(':');

/** Debian packages that this needs, by a program of each. */
export const umlPackages = { 'linux.uml': 'user-mode-linux', mke2fs: 'e2fsprogs', ip: 'iproute2', modprobe: 'kmod', setpriv: 'util-linux', unshare: 'util-linux' };

/** Why no machine can be started here, or null. */
export function umlMissing() {
  if (process.arch !== 'x64') return `User-Mode Linux runs on x64 only, this is ${process.arch}`;
  for (const [program, debianPackage] of Object.entries(umlPackages)) {
    if (!searchPath.split(':').some((directory) => existsSync(path.join(directory, program)))) {
      return `${program} is missing (Debian package ${debianPackage})`;
    }
  }
  return null;
}

/**
 * Boots a machine, runs one command in its copy of the project and gives back the exit code.
 * @param {{
 *   command: string[], env?: Record<string, string>, asUser?: boolean, deadlineMs: number, signal: AbortSignal,
 *   onOutput: (chunk: Buffer) => void, exchange?: string,
 * }} options `asUser`: as an ordinary user in a cgroup delegated to it. `exchange`: the directory that is
 *   /run/exchange in there.
 * @returns {Promise<number>} Rejects when the machine did not come to an end by itself.
 */
export async function runInUml({ command, env = {}, asUser = false, deadlineMs, signal, onOutput, exchange }) {
  const directory = makeScratch(os.tmpdir());
  const shared = exchange ?? path.join(directory, 'exchange');
  try {
    mkdirSync(shared, { recursive: true });
    chmodSync(shared, 0o777);
    writeFileSync(path.join(shared, 'job'), jobScript({ command, env, asUser }));
    copyFileSync(new URL('uml-init.sh', import.meta.url), path.join(directory, 'init'));
    chmodSync(path.join(directory, 'init'), 0o755);
    const image = await makeImage({ directory, uid: asUser || process.getuid() !== 0 ? ordinaryUid : 0, signal });
    const { log, timedOut } = await boot({ directory, exchange: shared, image, deadlineMs, signal, onOutput });
    const status = path.join(shared, 'status');
    if (timedOut) throw new Error(`User-Mode Linux was killed at its deadline of ${deadlineMs / 1000} s${lastWords(log)}`);
    if (!existsSync(status)) throw new Error(`User-Mode Linux ended without a status${lastWords(log)}`);
    return Number(readFileSync(status, 'utf8'));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function makeImage({ directory, uid, signal }) {
  const content = path.join(directory, 'content');
  const home = path.join(content, 'home');
  const project = path.join(content, 'project');
  for (const each of [content, home, project]) mkdirSync(each);
  await copyTree({ directory: project, uid, signal });
  if (uid !== process.getuid()) await execa('chown', [`${uid}:${uid}`, home, project]);
  const image = path.join(directory, 'image');
  writeFileSync(image, '');
  truncateSync(image, 4 * gibibyte);
  const options = ['-q', '-F', '-t', 'ext4', '-O', '^has_journal', '-E', 'nodiscard,lazy_itable_init=1'];
  await execa('mke2fs', [...options, '-d', content, image], { env: { PATH: searchPath }, cancelSignal: signal });
  rmSync(content, { recursive: true });
  return image;
}

/** What process 1 of the machine runs. As a user: in a leaf of a delegated subtree, with a place for sandboxes beside it. */
function jobScript({ command, env, asUser }) {
  const variables = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', HOME: '/tmp/home', ...env };
  const assignments = Object.entries(variables).map(([name, value]) => quote(`${name}=${value}`));
  const delegated = '/sys/fs/cgroup/delegated';
  const become = `setpriv --reuid ${ordinaryUid} --regid ${ordinaryUid} --clear-groups`;
  const lines = ['cd /tmp/project || exit 1'];
  if (asUser) {
    assignments.push(quote(`RINGFENCE_CGROUP=${delegated}/sandboxes`));
    lines.push(
      `mkdir ${delegated} && echo '+cpu +memory +pids' > ${delegated}/cgroup.subtree_control || exit 1`,
      `mkdir ${delegated}/session ${delegated}/sandboxes || exit 1`,
      `for d in ${delegated} ${delegated}/session ${delegated}/sandboxes; do`,
      `  chown ${ordinaryUid}:${ordinaryUid} $d $d/cgroup.procs $d/cgroup.threads $d/cgroup.subtree_control || exit 1`,
      'done',
      `echo $$ > ${delegated}/session/cgroup.procs || exit 1`,
    );
  }
  lines.push(`exec ${asUser ? `${become} ` : ''}env -i ${assignments.join(' ')} ${command.map(quote).join(' ')}`);
  return `${lines.join('\n')}\n`;
}

const quote = (word) => `'${word.replaceAll("'", `'\\''`)}'`;

/** The end of the kernel's log, without what the tests bring about on purpose. */
function lastWords(log) {
  const lines = log.split('\n').filter((line) => line !== '' && !line.startsWith('Memory cgroup out of memory'));
  return `; its last words:\n${lines.slice(-20).join('\n')}`;
}

/** Resolves with the kernel's log once the machine is off. */
async function boot({ directory, exchange, image, deadlineMs, signal, onOutput }) {
  // The machine's memory is a deleted file in TMPDIR. Its kernel must not outlive us: where it ended first, the
  // processes it traces would go on, as processes of the host. Hence a pid namespace that ends with it.
  const roomy = existsSync('/dev/shm') && statfsSync('/dev/shm').bavail * statfsSync('/dev/shm').bsize > 4 * gibibyte;
  const namespace = process.getuid() === 0 ? ['--pid'] : ['--user', '--map-current-user', '--pid'];
  const kernel = [
    'linux.uml', `mem=${Math.min(4096, Math.floor(os.totalmem() / 2 ** 20 / 2))}M`, `uml_dir=${directory}`, `ubd0=${image}`,
    'rootfstype=hostfs', 'rootflags=/', 'ro', `init=${path.join(directory, 'init')}`, `exchange=${exchange}`,
    'con=null', 'con0=null,fd:2', 'ssl=null', 'ssl0=null,fd:1', 'panic=1', 'quiet',
  ];
  const machine = execa('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...namespace, '--fork', '--kill-child=KILL', ...kernel], {
    env: { PATH: searchPath, TMPDIR: roomy ? '/dev/shm' : directory, HOME: directory },
    stdin: 'ignore', buffer: { stdout: false, stderr: true }, encoding: 'buffer', reject: false,
    timeout: deadlineMs, killSignal: 'SIGKILL', cancelSignal: signal,
  });
  machine.stdout.on('data', onOutput);
  const result = await machine;
  signal.throwIfAborted();
  return { log: Buffer.from(result.stderr ?? '').toString('utf8'), timedOut: result.timedOut };
}

async function main() {
  const { values, positionals } = parseArgs({
    options: { user: { type: 'boolean', default: false }, seconds: { type: 'string', default: '600' } },
    allowPositionals: true,
  });
  const missing = umlMissing();
  if (missing || positionals.length === 0) {
    console.error(missing ?? 'usage: node scripts/lanes/uml.mjs [--user] [--seconds N] -- command args…');
    return 2;
  }
  try {
    return await runInUml({
      command: positionals, asUser: values.user, deadlineMs: Number(values.seconds) * 1000, signal: abortOnSignals(),
      onOutput: (chunk) => process.stdout.write(chunk),
    });
  } catch (error) {
    console.error(error.message);
    return process.exitCode || 1;
  }
}

if (import.meta.filename === path.resolve(process.argv[1] ?? '')) process.exitCode = await main();
