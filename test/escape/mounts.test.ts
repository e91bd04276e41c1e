import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import path from 'node:path';

import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { attack, attackClass } from './support/attack.js';
import { afterScript, outside, withCapabilities } from './support/controls.js';
import { openDirectory } from './support/lab.js';
import type { Lab } from './support/lab.js';

interface Ground {
  /** Two directories that everybody may write to, granted for that. */
  here: string;
  there: string;
}

function ground(lab: Lab): Ground {
  const directory = lab.directory();
  return { here: openDirectory(directory, 'here', 0o777), there: openDirectory(directory, 'there', 0o777) };
}

const granted = ({ here, there }: Ground) => ({ filesystem: { write: [here, there] } });

/** A read-only mount where the program of the control is aimed at. */
const mountedReadOnly = ({ here }: Ground): string => `mount -t tmpfs -o ro,nosuid,nodev none ${here} || exit 1`;
const base = ['/', '/usr', '/etc/ssl/certs', '/proc/sys', '/dev/null', '/proc'];

attackClass({ name: 'remounting', program: 'mounts.c' }, [
  ...([
    ['tmpfs', 'Nothing can be mounted over a granted directory'],
    ['proc', 'A /proc of its own cannot be mounted'],
    ['bind', 'The root cannot be bound anywhere else'],
    ['clone-tree', 'No mount can be cloned'],
    ['pivot', 'The root cannot be changed for a granted directory'],
    ['new-file-system', 'A file system cannot be made for a later mount'],
  ] as const).map(([name, title]) =>
    attack({
      title,
      ground,
      guest: (lab, { here }) => lab.attack(name, here),
      options: granted,
      control: name === 'pivot' ? afterScript(({ here }: Ground) => `mount -t tmpfs none ${here} && cd ${here}`, (lab) => lab.attack(name, '.')) : withCapabilities<Ground>(),
    }),
  ),
  attack({
    title: 'A read-only mount cannot be made writable by a remount',
    ground,
    guest: (lab) => lab.attack('remount', ...base),
    control: afterScript(mountedReadOnly, (lab, { here }) => lab.attack('remount', here)),
  }),
  attack({
    title: 'A read-only mount cannot be made writable by mount_setattr',
    ground,
    guest: (lab) => lab.attack('set-attributes', ...base),
    control: afterScript(mountedReadOnly, (lab, { here }) => lab.attack('set-attributes', here)),
  }),
  attack({
    title: 'What covers a part of /proc cannot be taken off, nor any other mount',
    ground,
    guest: (lab) => lab.attack('unmount', '/proc/sys', '/proc/cmdline', '/proc/interrupts', '/proc/irq', '/proc', '/usr', '/tmp', '/'),
    control: afterScript(mountedReadOnly, (lab, { here }) => lab.attack('unmount', here)),
  }),
  attack({
    title: 'A mount cannot be moved off what it covers',
    ground,
    guest: (lab, { there }) => lab.attack('move', '/proc/sys', there),
    options: granted,
    control: afterScript(mountedReadOnly, (lab, { here, there }) => lab.attack('move', here, there)),
  }),
  attack({
    title: 'There is no way above the root by chroot and dots',
    ground,
    guest: (lab, { here }) => lab.attack('change-root', here),
    options: granted,
    control: withCapabilities(),
  }),
  attack({
    title: 'A device node cannot be made',
    requires: (context) => belongsHere(context, whereAmI().root, 'as root: nobody else can make one anywhere'),
    ground,
    guest: (lab, { here }) => lab.attack('make-device', path.join(here, 'device')),
    options: granted,
    control: outside(),
  }),
  attack({
    title: 'A device node in a granted directory cannot be opened',
    requires: (context) => belongsHere(context, whereAmI().root, 'as root: nobody else can put one there'),
    ground(lab) {
      const made = ground(lab);
      const device = path.join(made.here, 'zero');
      execFileSync('mknod', ['-m', '666', device, 'c', '1', '5']);
      chmodSync(device, 0o666);
      return { ...made, device };
    },
    guest: (lab, { device }) => lab.attack('open-device', device),
    options: granted,
    control: outside(),
  }),
]);
