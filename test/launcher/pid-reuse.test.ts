import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { execa } from 'execa';
import { expect, it } from 'vitest';

import { locateAddon } from '../../src/launcher/locate.js';
import { patience } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { scriptedLauncher } from './scripted.js';

it('a launcher that is gone is not mistaken for the process that has its number now', { timeout: patience(20_000) }, async (context) => {
  belongsHere(context, existsSync('/proc/sys/kernel/ns_last_pid'), 'where the kernel lets a number be asked for (CONFIG_CHECKPOINT_RESTORE)');
  const script = fileURLToPath(new URL('../fixtures/pid-reuse.mjs', import.meta.url));
  const apart = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'];
  const { stdout } = await execa('unshare', [...apart, process.execPath, script, locateAddon(), scriptedLauncher]);
  expect(stdout.split('\n')).toEqual(['spared', 'reached by number']);
});
