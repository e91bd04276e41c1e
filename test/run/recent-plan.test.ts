import { chmodSync, copyFileSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it, onTestFinished } from 'vitest';

import { readHostFacts } from '../../src/host/facts.js';
import { planRun } from '../../src/plan/plan-run.js';
import { RecentPlan } from '../../src/plan/recent-plan.js';
import { Host } from '../../src/run/host.js';
import { validateOptions } from '../../src/run/options.js';
import { runPlanned } from '../../src/run/run.js';
import type { RunOptions } from '../../src/run/options.js';
import { temporaryDirectory } from '../support/temporary.js';

const optionsFor = (command: string): RunOptions => ({ ...validateOptions({ command, args: [], timeoutMs: 20_000 }), network: 'none' });

/** A program in a directory of its own, as runtimes are installed in a home. */
function installed(): { program: string } {
  const home = temporaryDirectory();
  chmodSync(home, 0o755);
  mkdirSync(join(home, 'bin'));
  const program = join(home, 'bin/program');
  copyFileSync('/bin/true', program);
  return { program };
}

it('a plan that serves again has a cgroup of its own, and where the host is root an account of its own', async () => {
  const options = optionsFor('/bin/true');
  const facts = await readHostFacts();
  const recent = new RecentPlan();
  expect(recent.again(options, facts)).toBeNull();
  const first = await planRun(options, facts, new Set());
  recent.keep(first);
  const second = recent.again(options, facts);
  expect(second?.plan).toEqual({ ...first.plan, identity: second?.plan.identity, cgroup: second?.plan.cgroup });
  expect(second?.plan.cgroup).toEqual({ ...first.plan.cgroup, name: second?.plan.cgroup?.name });
  expect(second?.plan.cgroup?.name).not.toBe(first.plan.cgroup?.name);
  if (facts.uid === 0) expect(second?.plan.identity.outsideUid).not.toBe(first.plan.identity.outsideUid);
  expect(second?.encoded).not.toEqual(first.encoded);
});

it('a plan of the other state of the network switch does not serve', async () => {
  const options = optionsFor('/bin/true');
  const facts = await readHostFacts();
  const recent = new RecentPlan();
  onTestFinished(() => void delete process.env['SANDBOX_DISABLE_NETNS_FIREWALL']);
  for (const [planned, asked] of [['1', '0'], ['0', '1']]) {
    process.env['SANDBOX_DISABLE_NETNS_FIREWALL'] = planned;
    recent.keep(await planRun(options, facts, new Set()));
    expect(recent.again(options, facts)).not.toBeNull();
    process.env['SANDBOX_DISABLE_NETNS_FIREWALL'] = asked;
    expect(recent.again(options, facts)).toBeNull();
  }
});

it('runs one after the other and side by side by one plan', async () => {
  const { program } = installed();
  const [host, recent] = [new Host(), new RecentPlan()];
  const run = () => runPlanned(host, optionsFor(program), null, recent);
  const results = [await run(), ...(await Promise.all([run(), run(), run()]))];
  expect(results.map(({ outcome, exitCode }) => `${outcome} ${exitCode}`)).toEqual(new Array(4).fill('exit 0'));
});

it('a program that has moved meanwhile is found again, and one that is gone is missed', async () => {
  const { program } = installed();
  const elsewhere = installed();
  const [host, recent] = [new Host(), new RecentPlan()];
  const run = () => runPlanned(host, optionsFor(program), null, recent);
  expect(await run()).toMatchObject({ outcome: 'exit', exitCode: 0 });

  rmSync(program);
  symlinkSync(elsewhere.program, program);
  expect(await run()).toMatchObject({ outcome: 'exit', exitCode: 0 });

  renameSync(elsewhere.program, `${elsewhere.program}-gone`);
  expect(await run()).toMatchObject({ outcome: 'spawn-error', error: { errno: 'ENOENT', stage: null } });
});

it('a place for cgroups that has gone meanwhile is looked for again', async () => {
  const [host, recent] = [new Host(), new RecentPlan()];
  const run = () => runPlanned(host, optionsFor('/bin/true'), null, recent);
  expect(await run()).toMatchObject({ outcome: 'exit', exitCode: 0 });
  const { cgroup } = await host.facts();
  if (cgroup.kind !== 'ready') throw new Error('this test needs a place for cgroups');
  for (const parent of cgroup.parents) parent.directory = '/sys/fs/cgroup/ringfence-test-no-such-group';
  expect(await run()).toMatchObject({ outcome: 'exit', exitCode: 0 });
});
