import { once } from 'node:events';
import { existsSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { execa } from 'execa';
import { describe, expect, it } from 'vitest';

import { cli, MAIN } from '../cli/cli.js';
import { belongsHere } from '../support/skip.js';
import { patience, whereAmI } from '../support/lane.js';

const FENCES = ['privileges', 'identity', 'filesystem', 'network', 'pids', 'memory', 'cpu'];
const STRANGER = 54_321;
const DOCTOR = `${process.execPath} ${MAIN} doctor`;
const AS_STRANGER = ['setpriv', '--reuid', String(STRANGER), '--regid', String(STRANGER), '--clear-groups', 'env', '-u', 'RINGFENCE_CGROUP'];
const lane = whereAmI();

/** What the doctor says where a shell script has changed something; the script sees `$DOCTOR`. */
async function inPlace(command: string[], script: string) {
  const [file = 'sh', ...args] = [...command, 'sh', '-c', script];
  const { exitCode, stdout, stderr } = await execa(file, args, { env: { DOCTOR }, reject: false, stdin: 'ignore', timeout: patience(60_000) });
  expect(stderr).toBe('');
  return { exitCode, stdout, lines: stdout.split('\n') };
}

/** The commands that a remedy says root is to type. */
function commandsOf(report: string): string {
  return /as root: (.*?)(?: \(in a container|; then|$)/m.exec(report)?.[1] ?? '';
}

describe('a host that has everything', () => {
  it('has a line for each fence with its mechanism, and exit code 0', async () => {
    const { exitCode, stdout, stderr } = await cli(['doctor']);
    expect({ exitCode, stderr }, stdout).toEqual({ exitCode: 0, stderr: '' });
    for (const fence of FENCES) expect(stdout).toMatch(new RegExp(`^ +${fence} +enforced +\\S`, 'm'));
    expect(stdout).toContain(`cgroup-v${lane.cgroup}`);
    expect(stdout).toMatch(/^Strict runs are possible/m);
  });

  it('says the same as JSON', async () => {
    const { exitCode, stdout } = await cli(['doctor', '--json']);
    expect(exitCode).toBe(0);
    const report = JSON.parse(stdout) as { strict: boolean; abilities: { name: string; status: string; by: string }[]; findings: unknown[] };
    expect(report.strict).toBe(true);
    expect(report.abilities.slice(0, FENCES.length).map(({ name, status }) => [name, status])).toEqual(FENCES.map((name) => [name, 'enforced']));
    expect(Object.keys(report).sort()).toEqual(['abilities', 'findings', 'host', 'strict']);
  });

  it('prints an AppArmor profile for the very launcher', async () => {
    const { exitCode, stdout } = await cli(['doctor', '--apparmor']);
    expect(exitCode).toBe(0);
    const path = /^profile ringfence-launcher "(.*)" flags=\(unconfined\) \{$/m.exec(stdout)?.[1] ?? '';
    expect(existsSync(path), stdout).toBe(true);
  });
});

it('SANDBOX_DISABLE_NETNS_FIREWALL=1 is shown as a fence that is down, and is no failure', async () => {
  const { exitCode, stdout } = await cli(['doctor'], { env: { SANDBOX_DISABLE_NETNS_FIREWALL: '1' } });
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^ +network +DOWN +SANDBOX_DISABLE_NETNS_FIREWALL=1 +\[1\]$/m);
  expect(stdout).toContain('-> unset SANDBOX_DISABLE_NETNS_FIREWALL');
  expect((await cli(['doctor'], { env: { SANDBOX_DISABLE_NETNS_FIREWALL: '0' } })).stdout).toMatch(/network +enforced/);
});

it('user namespaces that are off: the sysctl, and nothing else is blamed', async () => {
  const script = 'echo 0 > /proc/sys/user/max_user_namespaces; $DOCTOR; code=$?; echo 1000 > /proc/sys/user/max_user_namespaces; $DOCTOR > /dev/null; echo "codes $code $?"';
  const { stdout } = await (lane.root ? asRootOfOwnNamespace(script) : inPlace(['unshare', '-Urm'], script));
  expect(stdout).toMatch(/^\[1\] .*user\.max_user_namespaces is 0/m);
  expect(stdout).toContain('-> as root: sysctl -w user.max_user_namespaces=63359');
  expect(stdout).not.toContain('[2]');
  // Root's guests get an account of their own all the same.
  expect(stdout).toMatch(lane.root ? /^ +identity +enforced +setuid/m : /^ +identity +MISSING +user-namespaces-disabled +\[1\]/m);
  // The control: with the setting as it was, the same place is a good one.
  expect(stdout).toMatch(/^codes 1 0$/m);
});

/** A user namespace with every id mapped: its sysctls are its own, and root of it is as able as root is. */
async function asRootOfOwnNamespace(script: string) {
  const asRoot = 'read go; exec setpriv --reuid 0 --regid 0 --clear-groups sh -c "$SCRIPT"';
  const child = execa('unshare', ['-Um', 'sh', '-c', `echo up; ${asRoot}`], { env: { DOCTOR, SCRIPT: script }, reject: false, timeout: patience(60_000) });
  await once(child.stdout, 'data');
  for (const map of ['uid_map', 'gid_map']) writeFileSync(`/proc/${child.pid}/${map}`, '0 0 2147483647');
  child.stdin.end('go\n');
  const { stdout, stderr } = await child;
  expect(stderr).toBe('');
  return { stdout };
}

describe('an ordinary account without a cgroup of its own', () => {
  it('gets a remedy for this very account, and following it helps', async (context) => {
    belongsHere(context, lane.root, 'as root');
    const { exitCode, stdout } = await inPlace(AS_STRANGER, '$DOCTOR');
    expect(exitCode).toBe(1);
    for (const fence of ['pids', 'memory']) expect(stdout).toMatch(new RegExp(`^ +${fence} +MISSING +CGROUP_NOT_DELEGATED +\\[1\\]`, 'm'));
    for (const fence of ['identity', 'filesystem', 'network']) expect(stdout).toMatch(new RegExp(`^ +${fence} +enforced`, 'm'));
    expect(stdout).toMatch(/NOT possible/);
    if (lane.cgroup === 2) return expect(stdout).toContain('start the program with: systemd-run --user --scope -p Delegate=yes');

    const path = /RINGFENCE_CGROUP=(\S+)/.exec(stdout)?.[1] ?? '';
    const made = [...new Set(commandsOf(stdout).match(/\/\S+/g))];
    try {
      await execa('sh', ['-c', commandsOf(stdout)]);
      const after = await inPlace([...AS_STRANGER, `RINGFENCE_CGROUP=${path}`], '$DOCTOR');
      expect(after.exitCode, after.stdout).toBe(0);
    } finally {
      for (const directory of made) removeUpwards(directory);
    }
  });
});

it('a controller that is not handed down: what a run that needs it is told', async (context) => {
  belongsHere(context, lane.root && lane.cgroup === 1, 'as root on cgroup v1');
  const { stdout: remedy } = await inPlace(AS_STRANGER, '$DOCTOR');
  const path = /RINGFENCE_CGROUP=(\S+)/.exec(remedy)?.[1] ?? '';
  const made = [...new Set(commandsOf(remedy).match(/\/\S+/g))].filter((directory) => !/\/cpu/.test(directory));
  try {
    await execa('mkdir', ['-p', ...made]);
    await execa('chown', ['-R', String(STRANGER), ...made]);
    const script = '$DOCTOR; echo "exit $?"; ${DOCTOR% *} run --json --no-cwd --cpus 1 -- true';
    const { stdout, lines } = await inPlace([...AS_STRANGER, `RINGFENCE_CGROUP=${path}`], script);
    expect(stdout).toMatch(/^ +cpu +MISSING +CGROUP_CONTROLLER_MISSING +\[1\]$/m);
    expect(stdout).toMatch(/^exit 0$/m);
    const { error } = JSON.parse(lines.at(-1) ?? '') as { error: { code: string; hint: string } };
    expect(error.code).toBe('CGROUP_CONTROLLER_MISSING');
    expect(error.hint).toContain('no cpu controller');
    expect(lines).toContain(`    -> ${error.hint}`);
  } finally {
    for (const directory of made) removeUpwards(directory);
  }
});

/** The cgroup and those above it that were made on the way to it: the first with processes or children in it stays. */
function removeUpwards(directory: string): void {
  for (let at = directory; ; at = dirname(at)) {
    try {
      rmdirSync(at);
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toMatch(/EBUSY|ENOTEMPTY|EROFS|ENOENT/);
      return;
    }
  }
}

it('a read-only /sys/fs/cgroup: the mounts by name, and following the remedy helps', async (context) => {
  belongsHere(context, lane.root, 'as root');
  const readOnly = `awk '$3 ~ /^cgroup/ { print $2 }' /proc/mounts | while read -r point; do mount -o remount,bind,ro "$point"; done`;
  const before = await inPlace(['unshare', '-m'], `${readOnly}; $DOCTOR`);
  expect(before.exitCode).toBe(1);
  for (const fence of ['pids', 'memory']) expect(before.stdout).toMatch(new RegExp(`^ +${fence} +MISSING +CGROUP_READ_ONLY +\\[1\\]`, 'm'));
  expect(before.stdout).toMatch(/mounted read-only; as root: mount -o remount,bind,rw \//);
  const after = await inPlace(['unshare', '-m'], `${readOnly}; ${commandsOf(before.stdout)}; $DOCTOR`);
  expect(after.exitCode, after.stdout).toBe(0);
});

it('a RINGFENCE_CGROUP that is not there is named', async () => {
  const { exitCode, stdout } = await cli(['doctor'], { env: { RINGFENCE_CGROUP: '/no/such/cgroup' } });
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/RINGFENCE_CGROUP \(\/no\/such\/cgroup\)/);
});

it('a /proc with masks, as containers have: strict runs without one, and the flag to get it', async (context) => {
  belongsHere(context, lane.root, 'as root');
  const { exitCode, stdout } = await inPlace(['unshare', '-m'], 'mount --bind /dev/null /proc/version; $DOCTOR');
  expect(exitCode, stdout).toBe(0);
  expect(stdout).toMatch(/^ +\/proc +MISSING +proc-masked +\[1\]$/m);
  expect(stdout).toContain('systempaths=unconfined');
});

it('no launcher: says how to get one', async (context) => {
  belongsHere(context, lane.root, 'as root');
  const root = dirname(dirname(dirname(MAIN)));
  const hide = `for place in ${root}/build/Release ${root}/prebuilds; do test ! -e "$place" || mount -t tmpfs none "$place"; done`;
  const { exitCode, stdout } = await inPlace(['unshare', '-m'], `${hide}; $DOCTOR`);
  expect(exitCode).toBe(1);
  expect(stdout).toContain('npm run build');
});
