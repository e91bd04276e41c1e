import { chmodSync, chownSync, renameSync, symlinkSync } from 'node:fs';
import path from 'node:path';

import { belongsHere } from '../support/skip.js';
import { whereAmI } from '../support/lane.js';
import { attack, attackClass } from './support/attack.js';
import type { Attempt } from './support/attack.js';
import { runInChildHost } from './support/child-host.js';
import { outside, withOptions } from './support/controls.js';
import { launchPlan } from './support/launch-plan.js';
import { openDirectory, randomWord } from './support/lab.js';
import type { Lab } from './support/lab.js';

interface Secret {
  directory: string;
  file: string;
  word: string;
}

const nobody = 65_534;
const group = 54_321;

const withSecret = (lab: Lab): Secret => lab.secret();
const theGrant = withOptions<Secret>('its directory granted', ({ directory }) => ({ filesystem: { read: [directory] } }));
const gotIt = ({ stdout }: Attempt, { word }: { word: string }): boolean => stdout.includes(word);

/** A granted directory beside one that is not. */
function neighbours(lab: Lab): Secret & { granted: string } {
  const secret = lab.secret();
  return { ...secret, granted: openDirectory(secret.directory, 'granted') };
}

/** Puts the symlink of a directory where its granted directory was. */
function putInPlace(granted: string, directory: string): void {
  renameSync(granted, path.join(directory, 'away'));
  renameSync(path.join(directory, 'link'), granted);
}

/** A script that opens a directory for its children under hundreds of numbers. */
const openMany = (directory: string): string => `for fd in {10..300}; do eval "exec $fd<${directory}"; done; exec "$@"`;

attackClass({ name: 'reading host files', program: 'files.c' }, [
  attack({
    title: 'A file outside the view cannot be read by its absolute path',
    ground: withSecret,
    guest: (lab, { file }) => lab.attack('paths', file, `/proc/self/root${file}`, `/proc/self/cwd/..${file}`, `//${file}`),
    control: theGrant,
    escaped: gotIt,
  }),
  attack({
    title: 'The dots above a granted directory lead nowhere',
    ground: neighbours,
    guest: (lab, { granted, file }) => lab.attack('paths', `${granted}/../secret`, `${granted}/../../../../../../../..${file}`),
    options: ({ granted }) => ({ filesystem: { read: [granted] } }),
    control: withOptions('the directory above granted', ({ directory }: Secret) => ({ filesystem: { read: [directory] } })),
    escaped: gotIt,
  }),
  attack({
    title: 'The dots above the working directory lead nowhere',
    ground: withSecret,
    guest: (lab, { file }) => lab.attack('relative', file.slice(1)),
    control: theGrant,
    escaped: gotIt,
  }),
  attack({
    title: 'A symlink in a granted directory leads to nothing outside it',
    ground(lab) {
      const ground = neighbours(lab);
      symlinkSync(ground.file, path.join(ground.granted, 'absolute'));
      symlinkSync('../secret', path.join(ground.granted, 'relative'));
      symlinkSync(`/proc/1/root${ground.file}`, path.join(ground.granted, 'magic'));
      return ground;
    },
    guest: (lab, { granted }) => lab.attack('paths', ...['absolute', 'relative', 'magic'].map((name) => path.join(granted, name))),
    options: ({ granted }) => ({ filesystem: { read: [granted] } }),
    control: withOptions('the target granted', ({ directory }: Secret) => ({ filesystem: { read: [directory] } })),
    escaped: gotIt,
  }),
  attack({
    title: 'A symlink that takes the place of a granted directory after it was checked is not followed',
    ground(lab) {
      const ground = neighbours(lab);
      symlinkSync(ground.directory, path.join(ground.directory, 'link'));
      return ground;
    },
    guest: (lab, { granted }) => lab.attack('paths', `${granted}/secret`),
    options: ({ granted }) => ({ filesystem: { read: [granted] } }),
    inside: (guest, options, { granted, directory }, lab) =>
      launchPlan({ ...guest, ...options, filesystem: { read: [granted, lab.program] } }, undefined, () => putInPlace(granted, directory)),
    control: {
      down: 'the symlink there before the check, so that its target is what was granted',
      run(guest, options, { granted, directory }, lab) {
        putInPlace(granted, directory);
        return lab.sandbox(guest, options);
      },
    },
    escaped: gotIt,
  }),
  attack({
    title: 'A granted directory that is exchanged with a symlink all the while never shows what the symlink leads to',
    async ground(lab) {
      const ground = neighbours(lab);
      const link = path.join(ground.directory, 'link');
      symlinkSync(ground.directory, link);
      const exchanger = await lab.start(lab.program, ['exchange', ground.granted, link]);
      return { ...ground, exchanger };
    },
    guest: (lab, { granted }) => lab.attack('read-often', `${granted}/secret`, '5'),
    options: ({ granted }) => ({ filesystem: { read: [granted] } }),
    async inside(guest, options, { granted, exchanger }, lab) {
      let attempt: Attempt | null = null;
      for (let round = 0; round < (whereAmI().uml ? 4 : 12) && !(attempt?.stdout.includes('ESCAPED') ?? false); round++) {
        attempt = await launchPlan({ ...guest, ...options, filesystem: { read: [lab.program] }, cwd: '/', cwdReadOnly: true, env: {} }, (plan) =>
          plan.mounts.push({ kind: 'bind', path: granted, source: granted, writable: false, idMap: 'none', mayBeMissing: false }),
        );
      }
      await exchanger.end();
      if (attempt === null) throw new Error('no launch was made');
      return attempt;
    },
    control: {
      down: 'outside any sandbox, with time for a hit',
      run: (_guest, _options, { granted }, lab) => lab.outside(lab.attack('read-often', `${granted}/secret`, '5000')),
    },
    escaped: gotIt,
  }),
  attack({
    title: 'No process has a root, a working directory or a descriptor that leads out, process 1 included',
    ground: withSecret,
    guest: (lab, { file }) => lab.attack('through-proc', file),
    control: outside(),
    escaped: gotIt,
  }),
  attack({
    title: 'Of the descriptors that a host has open for its children none reaches the guest',
    ground: withSecret,
    guest: (lab) => lab.attack('descriptors', 'secret'),
    inside: (guest, options, { directory }, lab) => runInChildHost(lab, guest, options, { through: ['bash', '-c', openMany(directory), 'bash'] }),
    control: {
      down: 'started by a shell that has them open',
      run: ({ command, args }, _options, { directory }, lab) =>
        lab.outside({ command: 'bash', args: ['-c', openMany(directory), 'bash', command, ...args] }),
    },
    escaped: gotIt,
  }),
  attack({
    title: "The host's working directory is not the guest's",
    ground: withSecret,
    guest: (lab) => lab.attack('relative', 'secret'),
    inside: (guest, options, { directory }, lab) => runInChildHost(lab, guest, options, { cwd: directory }),
    control: outside(({ directory }: Secret) => ({ cwd: directory })),
    escaped: gotIt,
  }),
  attack({
    title: "The host's environment is not the guest's",
    guest: (lab) => lab.attack('environment', 'CANARY'),
    inside: (guest, options, _ground, lab) => runInChildHost(lab, guest, options, { env: { CANARY: 'sings' } }),
    control: outside(() => ({ env: { CANARY: 'sings' } })),
  }),
  attack({
    title: "A key in the host's session keyring cannot be read",
    ground: () => ({ name: `ringfence-test-${randomWord()}`, word: randomWord() }),
    guest: (lab, { name }) => lab.attack('read-session-key', name),
    inside: (guest, options, { name, word }, lab) => runInChildHost(lab, guest, options, { through: [lab.program, 'with-session-key', name, word] }),
    control: {
      down: 'outside any sandbox, in the same session',
      run: ({ command, args }, _options, { name, word }, lab) => lab.outside(lab.attack('with-session-key', name, word, command, ...args)),
    },
    escaped: gotIt,
  }),
  attack({
    title: "The host's session keyring cannot be linked by its number",
    filterOnly: true,
    requires: (context) => belongsHere(context, !whereAmI().root, 'as an ordinary user: the guest of a root host has a uid of its own'),
    ground: () => ({ name: `ringfence-test-${randomWord()}`, word: randomWord() }),
    guest: (lab, { name }) => lab.attack('link-session', 'KEYRING', name),
    inside: (guest, options, { name, word }, lab) => runInChildHost(lab, guest, options, { through: [lab.program, 'with-session-key', name, word] }),
    control: {
      down: 'outside any sandbox, in a session of its own',
      run: ({ command, args }, _options, { name, word }, lab) => lab.outside(lab.attack('with-session-key', name, word, command, ...args)),
    },
    escaped: gotIt,
  }),
  attack({
    title: 'A file that only a group of the host process may read cannot be read',
    requires: (context) => belongsHere(context, whereAmI().root, 'as root: nobody else can join a group'),
    ground(lab) {
      const secret = lab.secret();
      chownSync(secret.file, nobody - 1, group);
      chmodSync(secret.file, 0o640);
      return secret;
    },
    guest: (lab, { file }) => lab.attack('paths', file),
    options: ({ directory }) => ({ filesystem: { read: [directory] } }),
    inside: (guest, options, _ground, lab) => runInChildHost(lab, guest, options, { through: ['setpriv', `--groups=0,${group}`, '--'] }),
    control: {
      down: 'outside any sandbox, as nobody in that group',
      run: ({ command, args }, _options, _ground, lab) =>
        lab.outside({ command: 'setpriv', args: [`--reuid=${nobody}`, `--regid=${nobody}`, `--groups=${group}`, '--', command, ...args] }),
    },
    escaped: gotIt,
  }),
  attack({
    title: 'The root directory holds nothing of the host but the base view',
    guest: (lab) =>
      lab.attack('list-root', 'usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32', 'nix', 'etc', 'proc', 'dev', 'tmp',
        ...[lab.program, process.env['HOME'] ?? '/', process.env['TMPDIR'] ?? '/'].map((each) => each.split('/')[1] ?? '')),
    options: () => ({ cwd: '/', cwdReadOnly: true }),
    control: outside(),
  }),
  attack({
    title: 'The kernel tells the guest nothing about itself or about others through /proc',
    guest: (lab) => lab.attack('paths', ...['cmdline', 'interrupts', 'kallsyms', 'keys', 'timer_list', 'diskstats', 'locks', 'swaps', 'kmsg', 'kcore'].map((name) => `/proc/${name}`)),
    control: outside(),
  }),
  attack({
    title: 'The files of other accounts, the machine id and the mounts of /sys are not there',
    guest: (lab) => lab.attack('paths', '/etc/shadow', '/etc/hostname', '/etc/machine-id', '/etc/fstab', '/sys/kernel/mm/transparent_hugepage/enabled', '/etc/group-', '/etc/debian_version', '/etc/os-release-'),
    control: outside(),
  }),
  attack({
    title: 'A file handle made outside opens nothing',
    requires: (context) => belongsHere(context, whereAmI().root, 'as root: nobody else may open handles at all, sandbox or not'),
    async ground(lab) {
      const ground = neighbours(lab);
      const { stdout } = await lab.outside(lab.attack('handle', ground.file));
      const [type = '', hex = ''] = stdout.trim().split(' ');
      return { ...ground, type, hex };
    },
    guest: (lab, { granted, type, hex }) => lab.attack('open-handle', granted, type, hex),
    options: ({ granted }) => ({ filesystem: { read: [granted] } }),
    control: outside(),
    escaped: gotIt,
  }),
  attack({
    title: 'What one run leaves in its scratch directories the next one does not find',
    ground(lab) {
      const word = randomWord();
      return { word, script: lab.fixture('leave-word.sh') };
    },
    guest: (_lab, { script, word }) => ({ command: '/bin/sh', args: [script, word, 'look'] }),
    options: ({ script }) => ({ filesystem: { read: [script] } }),
    async inside({ command, args }, options, { script, word }, lab) {
      const before = await lab.sandbox({ command, args: [script, word, 'leave'] }, options);
      if (before.exitCode !== 0) throw new Error(before.words);
      return lab.sandbox({ command, args }, options);
    },
    control: {
      down: 'left by the same run',
      run: ({ command }, options, { script, word }, lab) => lab.sandbox({ command, args: [script, word, 'leave', 'look'] }, options),
    },
  }),
]);

