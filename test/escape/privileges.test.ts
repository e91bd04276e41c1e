import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { attack, attackClass } from './support/attack.js';
import type { Control, Guest } from './support/attack.js';
import { runInChildHost } from './support/child-host.js';
import { outside, withCapabilities } from './support/controls.js';
import { openDirectory } from './support/lab.js';
import type { Lab } from './support/lab.js';

/** Nobody's: neither the host's, nor that of the owner of the programs below. */
const nobody = 65_534;
const owner = 65_533;
const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--'];

/** Outside any sandbox and, where the host is root, as an account to whom a setuid bit or a capability is a gain. */
function outsideAsNobody<Ground>(): Control<Ground> {
  if (!whereAmI().root) return outside();
  return {
    down: 'outside any sandbox, as nobody',
    run: ({ command, args }, _options, _ground, lab) =>
      lab.outside({ command: 'env', args: [...asNobody, command, ...args] }),
  };
}

/** A host to which real-time priorities were given, as media servers have them. */
const raised = ['prlimit', '--rtprio=50:50', '--nice=40:40', '--'];

function mayRaiseLimits(): boolean {
  const [command = '', ...args] = raised;
  return spawnSync(command, [...args, 'true'], { stdio: 'ignore' }).status === 0;
}

/** A copy of the class's program in a directory of its own, which the root host then arms. */
function copy(lab: Lab, arm: (program: string) => void): { directory: string; program: string } {
  const directory = lab.directory();
  const program = path.join(openDirectory(directory, 'bin'), 'program');
  copyFileSync(lab.program, program);
  chmodSync(program, 0o755);
  arm(program);
  return { directory, program };
}

const armed = { guest: (_lab: Lab, { program }: { program: string }): Guest => ({ command: program, args: ['who'] }) };

/** Makes a script the machine's core handler for the time of the test. */
function handler(lab: Lab): { trace: string } {
  const directory = lab.directory();
  const script = path.join(directory, 'handler');
  const trace = path.join(directory, 'trace');
  writeFileSync(script, `#!/bin/sh\n/bin/id -u > ${trace}\nexec cat > /dev/null\n`);
  chmodSync(script, 0o755);
  const setting = '/proc/sys/kernel/core_pattern';
  const before = readFileSync(setting, 'utf8');
  writeFileSync(setting, `|${script}`);
  onTestFinished(() => writeFileSync(setting, before));
  return { trace };
}

attackClass({ name: 'gaining privileges', program: 'privileges.c' }, [
  attack({
    title: 'A setuid program of the base view runs as nobody else than the guest',
    guest: (lab) => lab.attack('start-setuid', ...['su', 'passwd', 'mount', 'newgrp', 'chsh'].map((name) => `/usr/bin/${name}`)),
    control: outsideAsNobody(),
  }),
  attack({
    title: 'A setuid program in a granted directory runs as nobody else than the guest',
    requires: (context) => belongsHere(context, whereAmI().root, 'as root: who else could give a program away'),
    ground: (lab) =>
      copy(lab, (program) => {
        chownSync(program, owner, owner);
        chmodSync(program, 0o6755);
      }),
    ...armed,
    options: ({ directory }) => ({ filesystem: { read: [directory] } }),
    control: outsideAsNobody(),
  }),
  attack({
    title: 'A setuid program in a directory granted for writing runs as nobody else than the guest',
    requires: (context) => belongsHere(context, whereAmI().root, 'as root: who else could give a program away'),
    ground: (lab) =>
      copy(lab, (program) => {
        chownSync(program, owner, owner);
        chmodSync(program, 0o6755);
      }),
    ...armed,
    options: ({ directory }) => ({ filesystem: { write: [directory] } }),
    control: outsideAsNobody(),
  }),
  attack({
    title: 'A program with file capabilities gives none to the guest',
    requires: (context) => belongsHere(context, whereAmI().root, 'as root: who else could give a program capabilities'),
    ground: (lab) => copy(lab, (program) => execFileSync('setcap', ['cap_net_raw,cap_net_admin+ep', program], { env: { PATH: `${process.env['PATH']}:/usr/sbin:/sbin` } })),
    ...armed,
    options: ({ directory }) => ({ filesystem: { read: [directory] } }),
    control: outsideAsNobody(),
  }),
  attack({
    title: 'A program cannot be given file capabilities',
    ground: (lab) => ({ directory: openDirectory(lab.directory(), 'open', 0o777) }),
    guest: (lab, { directory }) => lab.attack('set-file-capability', path.join(directory, 'program')),
    options: ({ directory }) => ({ filesystem: { write: [directory] } }),
    control: withCapabilities(),
  }),
  attack({
    title: 'A user namespace cannot be made, and with it no capability over anything',
    guest: (lab) => lab.attack('user-namespace'),
    control: outside(),
  }),
  attack({
    title: 'No other namespace can be made',
    guest: (lab) => lab.attack('other-namespaces'),
    control: withCapabilities(),
  }),
  attack({
    title: 'No namespace can be entered, neither by its file nor by a pidfd',
    guest: (lab) => lab.attack('enter-namespaces'),
    control: withCapabilities(),
  }),
  attack({
    title: 'The ids cannot be changed',
    guest: (lab) => lab.attack('other-ids'),
    control: withCapabilities(),
  }),
  attack({
    title: 'No capability set holds anything, and none can be raised',
    guest: (lab) => lab.attack('raise-capabilities'),
    control: withCapabilities(),
  }),
  attack({
    title: 'The host name cannot be set',
    guest: (lab) => lab.attack('set-hostname'),
    control: withCapabilities(),
  }),
  attack({
    title: 'A real-time priority cannot be had, nor a higher one',
    requires: (context) => belongsHere(context, whereAmI().root, 'as root: nobody else has a right to it that could be kept'),
    guest: (lab) => lab.attack('real-time'),
    control: outside(),
  }),
  attack({
    title: "The host's own limit for real-time priorities is not handed on",
    requires: (context) => belongsHere(context, mayRaiseLimits(), 'where limits may be raised (CAP_SYS_RESOURCE)'),
    guest: (lab) => lab.attack('real-time'),
    inside: (guest, options, _ground, lab) => runInChildHost(lab, guest, options, { through: raised }),
    control: {
      down: 'outside any sandbox, as nobody, with that limit',
      run: ({ command, args }, _options, _ground, lab) => {
        const [raise = '', ...limits] = raised;
        return lab.outside({ command: raise, args: [...limits, ...asNobody, command, ...args] });
      },
    },
  }),
  attack({
    title: "A crash starts no core handler of the host's",
    requires: (context) => belongsHere(context, whereAmI().uml && whereAmI().root, 'as root in User-Mode Linux: the handler is one of the whole machine'),
    ground: handler,
    guest: () => ({ command: '/bin/sh', args: ['-c', 'kill -SEGV $$'] }),
    control: {
      down: 'outside any sandbox, with a limit of 0 for core files',
      run: ({ command, args }, _options, _ground, lab) => lab.outside({ command: 'prlimit', args: ['--core=0:0', '--', command, ...args] }),
    },
    async escaped(_attempt, { trace }) {
      for (let tries = 0; tries < 40 && !existsSync(trace); tries++) await sleep(50);
      return existsSync(trace);
    },
  }),
  attack({
    title: 'The limit that turns core dumps off cannot be raised',
    guest: (lab) => lab.attack('core-dumps'),
    control: outside(),
  }),
]);
