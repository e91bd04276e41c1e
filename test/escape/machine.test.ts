import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';

import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { aloneInside, requiresLandlock } from './support/alone.js';
import { attack, attackClass } from './support/attack.js';
import { runInChildHost } from './support/child-host.js';
import { afterScript, outside, withOptions } from './support/controls.js';
import { openDirectory } from './support/lab.js';
import type { Lab } from './support/lab.js';

const atTerminal = (lab: Lab): string[] => ['python3', lab.fixture('at-terminal.py')];

attackClass({ name: 'what belongs to the machine', program: 'machine.c' }, [
  attack({
    title: 'No file system of the kernel can be mounted, to set a release agent, a uevent helper or a binary format',
    ground: (lab) => ({ directory: openDirectory(lab.directory(), 'here', 0o777) }),
    guest: (lab, { directory }) => lab.attack('mount', directory, 'cgroup', 'cgroup2', 'sysfs', 'binfmt_misc', 'debugfs', 'tracefs', 'bpf', 'mqueue'),
    options: ({ directory }) => ({ filesystem: { write: [directory] } }),
    control: afterScript(() => 'exec unshare --cgroup -- "$0" "$@"'),
  }),
  attack({
    title: "The machine's devices are not there, those that everybody may open neither",
    guest: (lab) => lab.attack('open-devices', 'ptmx', 'pts/ptmx', 'fuse', 'kvm', 'net/tun', 'vhost-vsock', 'loop-control', 'tty0', 'console'),
    control: outside(),
  }),
  attack({
    title: 'The terminal that the host was started at cannot be typed into',
    guest: (lab) => lab.attack('terminal'),
    inside: (guest, options, _ground, lab) => runInChildHost(lab, guest, options, { through: atTerminal(lab) }),
    control: {
      down: 'at the terminal, outside any sandbox',
      run({ command, args }, _options, _ground, lab) {
        const [python = '', ...words] = atTerminal(lab);
        return lab.outside({ command: python, args: [...words, command, ...args] });
      },
    },
  }),
  attack({
    title: 'The clock cannot be set',
    requires: (context) => belongsHere(context, whereAmI().uml && whereAmI().root, 'as root in User-Mode Linux: the clock is one of the whole machine'),
    guest: (lab) => lab.attack('set-clock'),
    control: outside(),
  }),
]);

attackClass({ name: "what is counted for the host's account", program: 'machine.c' }, [
  attack({
    title: 'A guest takes but a part of the inotify instances that the account may have',
    guest: (lab) => lab.attack('watch', '24'),
    control: outside(),
  }),
  attack({
    title: 'A guest takes but a part of the pending signals that the account may have',
    guest: (lab) => lab.attack('timers', '1500'),
    control: outside(),
  }),
]);

/** The filter is the fence: down in the control as in all of them. */
const withoutFilter = withOptions<unknown>('the filter', () => ({}));

attackClass({ name: "the kernel's less trodden paths", program: 'machine.c' }, [
  ...([
    ['io-uring', 'No io_uring can be had, whose operations pass no filter'],
    ['page-faults', 'Page faults cannot be handled by the guest, which makes races in the kernel easy to win'],
    ['no-randomization', 'Programs cannot be started at addresses that are known'],
    ['add-key', 'Nothing can be left in a keyring, which no namespace holds'],
    ['lease', 'No file can be leased, which keeps whoever opens it on the host waiting'],
  ] as const).map(([name, title]) =>
    attack({ title, guest: (lab) => lab.attack(name, 'ringfence-test'), filterOnly: true, control: withoutFilter }),
  ),
]);

attackClass({ name: 'what a guest leaves behind', program: 'machine.c' }, [
  attack({
    title: 'A working directory full of links, odd names and closed directories is removed, and nothing that the links lead to',
    requires: requiresLandlock,
    ground(lab) {
      const victim = openDirectory(lab.directory(), 'victim', 0o777);
      writeFileSync(`${victim}/file`, '');
      return { victim };
    },
    guest: (lab, { victim }) => lab.attack('leave', victim, '1200'),
    inside: (guest, options, _ground, lab) => aloneInside(guest, options, lab),
    escaped: (_attempt, { victim }) => !existsSync(`${victim}/file`),
    check({ verdict, words, result }) {
      expect(verdict, words).toBe('held');
      expect(existsSync(result?.cwd ?? '/')).toBe(false);
    },
    control: {
      down: 'left outside any sandbox, and removed by one who follows links',
      async run(guest, _options, _ground, lab) {
        const cwd = openDirectory(lab.directory(), 'left', 0o777);
        const attempt = await lab.outside({ ...guest, args: guest.args.with(-1, '3') }, { cwd });
        // What is closed to an ordinary user's `find` is no fault here.
        execFileSync('sh', ['-c', 'find -L . -type f -delete 2>/dev/null; chmod -R u+rwx .'], { cwd });
        return attempt;
      },
    },
  }),
]);
