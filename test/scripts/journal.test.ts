import { appendFileSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { execa } from 'execa';
import { expect, it } from 'vitest';
// @ts-expect-error scripts have no declarations
import { readJournal, vitestCommand } from '../../scripts/lanes/vitest.mjs';
import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { temporaryDirectory } from '../support/temporary.js';

const root = path.resolve(import.meta.dirname, '../..');

async function journalOf(files: Record<string, string>): Promise<{ journal: string; exitCode: number | undefined }> {
  const project = temporaryDirectory();
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(project, name), content);
  symlinkSync(path.join(root, 'node_modules'), path.join(project, 'node_modules'));
  symlinkSync(path.join(root, 'scripts'), path.join(project, 'scripts'));
  const journal = path.join(project, 'journal');
  const [program, ...args] = vitestCommand({ project, journal, filters: [] }) as [string, ...string[]];
  const { exitCode } = await execa(program, args, { cwd: project, reject: false, stdin: 'ignore' });
  return { journal, exitCode };
}

it('holds every test with its reason, files and hooks that fail, and errors outside of tests', async (context) => {
  belongsHere(context, !whereAmI().uml, 'on the host: it is about vitest, which starts slowly elsewhere');
  const { journal, exitCode } = await journalOf({
    'a.test.mjs': `
      import { beforeAll, describe, expect, it } from 'vitest';
      it('passes', () => {});
      let tries = 0;
      it('passes when tried again', () => { expect(++tries, 'the first try').toBe(2); });
      it('fails', () => { expect(1, 'no').toBe(2); });
      it('is skipped', (context) => context.skip('only as root'));
      it.skip('is skipped in silence', () => {});
      it.todo('is to do');
      describe('outer', () => { beforeAll(() => { throw new Error('the hook'); }); it('inner', () => {}); });`,
    'b.test.mjs': "import './none.mjs';",
    'c.test.mjs': "import { it } from 'vitest'; it('goes on', () => { setTimeout(() => { throw new Error('late'); }); return new Promise((done) => setTimeout(done, 50)); });",
  });
  expect(exitCode).toBe(1);
  const tests = readJournal(journal) as { name: string; status: string; reason: string }[];
  expect(tests.sort((one, other) => one.name.localeCompare(other.name))).toEqual([
    { name: 'a.test.mjs > fails', status: 'failed', reason: expect.stringContaining('no') },
    { name: 'a.test.mjs > is skipped', status: 'skipped', reason: 'only as root' },
    { name: 'a.test.mjs > is skipped in silence', status: 'skipped', reason: '' },
    { name: 'a.test.mjs > is to do', status: 'skipped', reason: 'to do' },
    { name: 'a.test.mjs > outer', status: 'failed', reason: 'the hook' },
    { name: 'a.test.mjs > outer > inner', status: 'skipped', reason: '' },
    { name: 'a.test.mjs > passes', status: 'passed', reason: '' },
    { name: 'a.test.mjs > passes when tried again', status: 'passed', reason: expect.stringContaining('the first try'), retries: 1 },
    { name: 'b.test.mjs', status: 'failed', reason: expect.stringContaining('none.mjs') },
    { name: 'c.test.mjs > goes on', status: 'passed', reason: '' },
    { name: 'outside any test', status: 'failed', reason: 'late' },
  ]);
});

it('of a run that was ended names what had begun', () => {
  const journal = path.join(temporaryDirectory(), 'journal');
  const lines = [{ begun: 'a > one' }, { name: 'a > one', status: 'passed', reason: '' }, { begun: 'a > two' }];
  writeFileSync(journal, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  expect(readJournal(journal)).toEqual([
    { name: 'a > one', status: 'passed', reason: '' },
    { name: 'a > two', status: 'failed', reason: 'the run was ended before it was over' },
  ]);
  appendFileSync(journal, '{"ended":true}\n');
  expect(readFileSync(journal, 'utf8')).toContain('ended');
  expect(readJournal(journal)).toHaveLength(1);
  expect(readJournal(`${journal}.none`)).toEqual([]);
});
