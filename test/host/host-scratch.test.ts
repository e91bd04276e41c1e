import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect, it } from 'vitest';

import { nameRun, startTimeOf } from '../../src/cgroup/run-name.js';
import { sweepScratch } from '../../src/host/host-scratch.js';
import { temporaryDirectory } from '../support/temporary.js';

const self = { pid: process.pid, startTime: startTimeOf(readFileSync('/proc/self/stat', 'utf8')) ?? 0, pidNamespace: 1234 };
/** A process that is gone. */
const dead = { ...self, pid: spawnSync('true').pid };

it('removes the scratch directories of hosts that are gone, and nothing else', async () => {
  const directory = temporaryDirectory();
  const make = (name: string): string => {
    const made = path.join(directory, name);
    mkdirSync(path.join(made, 'deep/er'), { recursive: true });
    writeFileSync(path.join(made, 'deep/file'), '');
    return made;
  };
  const kept = [make(nameRun(self)), make(nameRun({ ...dead, pidNamespace: 4321 })), make('ringfence-notes'), make('other')];
  const link = path.join(directory, nameRun(dead));
  symlinkSync(kept[3] ?? '', link);
  const file = path.join(directory, nameRun(dead));
  writeFileSync(file, '');
  const gone = make(nameRun(dead));
  await sweepScratch(directory, self, process.geteuid?.() ?? -1);
  expect(existsSync(gone)).toBe(false);
  for (const each of [...kept, link, file, path.join(kept[3] ?? '', 'deep/file')]) expect(existsSync(each), each).toBe(true);
});

it('leaves what belongs to others alone, whatever its name', async () => {
  const directory = temporaryDirectory();
  const strange = path.join(directory, nameRun(dead));
  mkdirSync(strange);
  await sweepScratch(directory, self, (process.geteuid?.() ?? 0) + 1);
  expect(existsSync(strange)).toBe(true);
  await sweepScratch('/nonexistent', self, 0);
});
