import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { currentDirectory, pathFrom } from '../../src/cli/current-directory.js';
import { temporaryDirectory } from '../support/temporary.js';
import { shell } from './cli.js';

/** `real/below` with data in it, `link` to that, and an `other` beside each of the two. */
function place(): string {
  const root = realpathSync(temporaryDirectory());
  for (const directory of ['real/below/data', 'real/other', 'other']) mkdirSync(join(root, directory), { recursive: true });
  writeFileSync(join(root, 'real/below/data/words.txt'), 'one\ntwo\n');
  for (const directory of ['real/other', 'other']) writeFileSync(join(root, directory, 'name'), `${directory}\n`);
  writeFileSync(join(root, 'real/below/own.sh'), '#!/bin/sh\necho own\n', { mode: 0o755 });
  writeFileSync(join(root, 'real/below/fn.js'), 'export default () => "fn"');
  symlinkSync('real/below', join(root, 'link'));
  return root;
}

const inLink = (script: string) => shell(`cd link && ${script}`, { cwd: place() });

describe('in a directory that was entered by a link', () => {
  it.each([
    ['a path that the shell makes of PWD is one that was granted', `$RINGFENCE run --no-cwd --read ./data -- sh -c 'wc -l < "$1"' sh "$PWD/data/words.txt"`, /^2\n$/],
    ['the command starts in it, and sees it by both names', `$RINGFENCE run -- sh -c 'cat data/words.txt "$1/data/words.txt" "$2/data/words.txt"' sh "$PWD" "$(pwd -P)"`, /^(one\ntwo\n){3}$/],
    ['a command may be named from it', '$RINGFENCE run -- ./own.sh', /^own\n$/],
    ['--write . makes it writable', `$RINGFENCE run --write . -- sh -c 'echo new > new' && cat "$PWD/new"`, /^new\n$/],
    ['what climbs out of it leads where it leads for any command', `cat ../other/name; $RINGFENCE run --read ../other -- cat ../other/name`, /^(real\/other\n){2}$/],
    ['eval finds a file in it', '$RINGFENCE eval --runtime node ./fn.js', /^"fn"\n$/],
  ])('%s', async (_, script, printed) => {
    const { stdout, stderr } = await inLink(script);
    expect(stderr).toBe('');
    expect(stdout).toMatch(printed);
  });
});

describe('PWD', () => {
  const here = process.cwd();

  it.each([undefined, '', 'relative', '/', '/no/such/directory', '.'])('%o is not believed', (pwd) => {
    expect(currentDirectory(pwd)).toEqual({ name: here, real: here });
  });

  it('is believed where it leads here', () => {
    const link = join(temporaryDirectory(), 'link');
    symlinkSync(here, link);
    for (const pwd of [link, `${link}/`, `${link}/.`]) expect(currentDirectory(pwd)).toEqual({ name: link, real: here });
  });
});

it.each([
  ['.', '/link'],
  ['a/../b', '/link/b'],
  ['..a', '/link/..a'],
  ['..', '/real'],
  ['./../b', '/real/b'],
  ['a/../../b', '/real/b'],
  ['/c', '/c'],
])('%s is %s', (typed, path) => {
  expect(pathFrom({ name: '/link', real: '/real/here' }, typed)).toBe(path);
});
