/** Where user namespaces are refused: an ordinary account whose every clone of one fails. */
import { chownSync } from 'node:fs';
import type { TestContext } from 'vitest';

import type { SandboxResult } from '../../../src/index.js';
import { belongsHere } from '../../support/skip.js';
import { whereAmI } from '../../support/lane.js';
import type { Attempt, Control, Guest, Options } from './attack.js';
import { runInChildHost } from './child-host.js';
import type { Lab } from './lab.js';

const { root, uml } = whereAmI();

/** The account that is tried on: root has none of its own that is an ordinary one. */
export const ACCOUNT = root ? 54_321 : (process.getuid?.() ?? 0);

const asAccount = root ? ['setpriv', '--reuid', String(ACCOUNT), '--regid', String(ACCOUNT), '--clear-groups'] : [];

/** One user namespace is allowed below the outer one, and the inner one is it. */
const refuseMore = 'echo 1 > /proc/sys/user/max_user_namespaces && exec unshare --user --map-user=1000 --map-group=1000 -- "$@"';

/** The command in front of a host or a program of this account. */
export const alone = [...asAccount, 'unshare', '--user', '--map-root-user', 'sh', '-c', refuseMore, 'sh'];

/** User-Mode Linux is built without. */
export function requiresLandlock(context: TestContext): void {
  belongsHere(context, !uml, 'where the kernel has Landlock');
}

/** The same beside a process, in the same user namespace, whose number is in a file. */
export function beside(file: string): string[] {
  return [...alone, 'sh', '-c', 'MARK=secret-of-another sleep 25 <&- >&- 2>&- & echo $! > "$0" && exec "$@"', file];
}

export function own(...paths: string[]): void {
  if (root) for (const path of paths) chownSync(path, ACCOUNT, ACCOUNT);
}

/** A best-effort run of a host there, which has to say that nothing but the lesser walls held. */
export async function aloneInside(guest: Guest, options: Options, lab: Lab, through = alone): Promise<Attempt> {
  const { landlock: _firstWallHere, ...others } = options;
  const attempt = await runInChildHost(lab, guest, { isolation: 'best-effort', ...others }, { through, env: { HOME: '/' } });
  const { enforcement, errorMessage } = attempt.result as SandboxResult;
  if (enforcement.identity.status !== 'unavailable' || !enforcement.filesystem.by.startsWith('landlock ABI')) {
    throw new Error(`not without namespaces: ${errorMessage} ${JSON.stringify(enforcement)}`);
  }
  return attempt;
}

/** The same account in the same place, without a sandbox. */
export function outsideAlone<Ground>(through: (ground: Ground) => string[] = () => alone): Control<Ground> {
  return {
    down: 'outside any sandbox, as the same account',
    run: ({ command, args }, _options, ground, lab) => {
      const [first = '', ...words] = [...through(ground), command, ...args];
      return lab.outside({ command: first, args: words }, { cwd: openPlace(lab) });
    },
  };
}

function openPlace(lab: Lab): string {
  const directory = lab.directory();
  own(directory);
  return directory;
}
