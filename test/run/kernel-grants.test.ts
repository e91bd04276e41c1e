import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';

import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { temporaryDirectory } from '../support/temporary.js';

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

it("refuses a grant in which the host's /proc or /sys is mounted, wherever that is", (context) => {
  belongsHere(context, whereAmI().root, 'as root: the mounts are made in a namespace of the test');
  const directory = temporaryDirectory();
  mkdirSync(`${directory}/inner`);
  const run = (source: string | null, grant: string) => {
    const mount = source === null ? ':' : `mount --rbind ${source} ${directory}/inner`;
    const script = `${mount} && exec "$1" "$2" run --json --no-cwd --read "$3" -- ls "$3"`;
    const { stdout } = spawnSync('unshare', ['-m', '--propagation', 'private', 'sh', '-c', script, 'sh', process.execPath, cli, grant], { encoding: 'utf8' });
    return JSON.parse(stdout) as { outcome: string; error: { code: string } | null };
  };
  execFileSync('unshare', ['-m', 'true']);
  for (const source of ['/proc', '/sys']) {
    for (const grant of [directory, `${directory}/inner`]) {
      expect(run(source, grant)).toMatchObject({ outcome: 'spawn-error', error: { code: 'grant-of-the-kernel' } });
    }
  }
  // The control: the same directories without the mount, and with another one.
  expect(run(null, directory)).toMatchObject({ outcome: 'exit', error: null });
  expect(run('/usr/share', `${directory}/inner`)).toMatchObject({ outcome: 'exit', error: null });
});
