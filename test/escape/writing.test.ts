import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { attack, attackClass } from './support/attack.js';
import { runInChildHost } from './support/child-host.js';
import { aimedAt, outside, withCapabilities, withOptions } from './support/controls.js';
import { openDirectory } from './support/lab.js';
import type { Lab } from './support/lab.js';

interface Ground {
  directory: string;
  /** A directory with a `file` and an empty `sub`: everybody may write to them, so that no permission bit is in the way. */
  kept: string;
  file: string;
  /** Its empty neighbour. */
  open: string;
}

function ground(lab: Lab): Ground {
  const directory = lab.directory();
  chmodSync(directory, 0o777);
  const kept = openDirectory(directory, 'kept', 0o777);
  openDirectory(kept, 'sub', 0o777);
  const file = path.join(kept, 'file');
  writeFileSync(file, 'as it was');
  chmodSync(file, 0o666);
  return { directory, kept, file, open: openDirectory(directory, 'open', 0o777) };
}

const readOnly = ({ kept }: Ground) => ({ filesystem: { read: [kept] } });
const bothSides = ({ kept, open }: Ground) => ({ filesystem: { read: [kept], write: [open] } });
const writable = withOptions('the directory granted for writing', ({ kept }: Ground) => ({ filesystem: { read: [], write: [kept] } }));
const noBorder = withOptions('both in one writable grant', ({ directory }: Ground) => ({ filesystem: { read: [], write: [directory] } }));

/** Starts a command in a mount namespace of its own, with the writable `open` mounted on `kept/sub`. */
const mountBelow = ({ kept, open }: Ground): string[] => [
  ...['unshare', '--mount', 'sh', '-c'],
  `umask 0 && echo x > ${open}/file && mkdir ${open}/sub && mount --bind ${open} ${kept}/sub && exec "$@"`,
  'sh',
];

attackClass({ name: 'writing outside the grants', program: 'writes.c' }, [
  attack({
    title: 'Nothing in a read-only grant can be changed, whatever the call',
    ground,
    guest: (lab, { kept }) => lab.attack('change', kept),
    options: readOnly,
    control: writable,
  }),
  attack({
    title: 'A file that was opened for reading cannot be opened again for writing through /proc/self/fd',
    ground,
    guest: (lab, { file }) => lab.attack('reopen', file),
    options: readOnly,
    control: writable,
  }),
  attack({
    title: 'A file of a read-only grant gets no second name in a writable one',
    ground,
    guest: (lab, { file, open }) => lab.attack('hard-link', file, path.join(open, 'name')),
    options: bothSides,
    control: noBorder,
  }),
  attack({
    title: 'Nothing is moved or exchanged between a read-only grant and a writable one',
    ground,
    guest: (lab, { file, open }) => lab.attack('move', file, path.join(open, 'name')),
    options: bothSides,
    control: noBorder,
  }),
  attack({
    title: 'A read-only grant inside a writable one is read-only',
    ground,
    guest: (lab, { kept }) => lab.attack('change', kept),
    options: ({ directory, kept }) => ({ filesystem: { read: [kept], write: [directory] } }),
    control: noBorder,
  }),
  attack({
    title: 'A read-only grant inside a writable one cannot be replaced by way of a directory between them',
    ground(lab) {
      const directory = lab.directory();
      chmodSync(directory, 0o777);
      const above = openDirectory(directory, 'above', 0o777);
      const kept = openDirectory(above, 'kept', 0o777);
      const file = path.join(kept, 'file');
      writeFileSync(file, 'as it was');
      return { directory, kept, file };
    },
    guest: (lab, { directory }) => lab.attack('replace-above', directory),
    options: ({ directory, kept }) => ({ filesystem: { read: [kept], write: [directory] } }),
    control: withOptions('without the read-only grant', () => ({ filesystem: { read: [] } })),
    escaped: (_attempt, { file }) => contentOf(file) !== 'as it was',
  }),
  attack({
    title: 'What is mounted below a read-only grant is read-only too',
    requires: (context) => belongsHere(context, whereAmI().root, 'as root: nobody else mounts anything'),
    ground,
    guest: (lab, { kept }) => lab.attack('change', `${kept}/sub`),
    inside: (guest, options, on, lab) => runInChildHost(lab, guest, options, { through: mountBelow(on) }),
    options: readOnly,
    control: {
      down: 'the directory granted for writing',
      run: (guest, options, on, lab) => runInChildHost(lab, guest, { ...options, filesystem: { write: [on.kept] } }, { through: mountBelow(on) }),
    },
  }),
  attack({
    title: 'A working directory given as read-only cannot be changed',
    ground,
    guest: (lab) => lab.attack('change', '.'),
    options: ({ kept }) => ({ cwd: kept, cwdReadOnly: true }),
    control: withOptions('not given as read-only', () => ({ cwdReadOnly: false })),
  }),
  attack({
    title: "The base view and the root are on read-only mounts, not only out of the reach of the guest's uid",
    ground,
    guest: (lab) => lab.attack('make-in', '/', '/usr', '/usr/bin', '/usr/lib', '/bin', '/lib', '/etc', '/etc/ssl', '/etc/ssl/certs', '/etc/alternatives', '/dev', '/proc/sys'),
    options: ({ open }) => ({ filesystem: { write: [open] } }),
    control: aimedAt('aimed at a writable grant', (lab, { open }: Ground) => lab.attack('make-in', '/', open)),
  }),
  attack({
    title: 'No setting of the kernel can be opened for writing',
    guest: (lab) =>
      lab.attack('open-for-writing', ...['net/ipv4/ip_forward', 'kernel/domainname', 'kernel/core_pattern', 'kernel/modprobe', 'vm/drop_caches', 'user/max_user_namespaces', 'fs/binfmt_misc/register'].map((name) => `/proc/sys/${name}`),
        '/proc/sysrq-trigger', '/proc/1/oom_score_adj', '/proc/irq/default_smp_affinity'),
    control: withCapabilities(),
  }),
  attack({
    title: 'What covers a masked file of /proc cannot be written to by the guest that owns it',
    guest: (lab) => lab.attack('open-for-writing', ...['cmdline', 'interrupts', 'kallsyms', 'timer_list', 'keys', 'locks'].map((name) => `/proc/${name}`)),
    control: aimedAt('aimed at a file of its own', (lab) => lab.attack('open-for-writing', '/proc/self/comm')),
  }),
  attack({
    title: 'The times of a device of the host cannot be set',
    guest: (lab) => lab.attack('touch', '/dev/null'),
    control: outside(),
  }),
  attack({
    title: 'A program that runs as its owner cannot be left in a writable grant',
    filterOnly: true,
    ground,
    guest: (lab) => lab.attack('leave-setuid', lab.program),
    options: ({ open }) => ({ cwd: open }),
    control: outside(({ open }: Ground) => ({ cwd: open })),
    escaped: (_attempt, { open }) => ((statSync(path.join(open, 'left'), { throwIfNoEntry: false })?.mode ?? 0) & 0o6000) !== 0,
  }),
]);

function contentOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null; // ENOENT: it was moved away
  }
}
