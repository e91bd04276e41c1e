import { chmodSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';

import { beforeAll, describe, expect, it } from 'vitest';

import type { BaseView } from '../../src/plan/base-view.js';
import { readBaseView } from '../../src/plan/base-view.js';
import { CommandNotFound } from '../../src/plan/errors.js';
import { findExecutable } from '../../src/plan/executable.js';
import { belongsHere } from '../support/skip.js';
import { temporaryDirectory } from '../support/temporary.js';

let base: BaseView;
beforeAll(async () => {
  base = await readBaseView('/usr/bin:/bin');
});

function script(path: string, mode = 0o755, content = '#!/bin/sh\n'): string {
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

async function failure(command: string, searchPath?: string) {
  const error: unknown = await findExecutable(command, searchPath, base).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(CommandNotFound);
  return error as CommandNotFound;
}

describe('findExecutable', () => {
  it.each(['/bin/sh', '/usr/bin/env', '/usr/bin/../bin/env', '//usr//bin/env'])('finds %s at its real place', async (command) => {
    const found = await findExecutable(command, undefined, base);
    expect(found.real).toBe(realpathSync(command));
    expect(realpathSync(found.path)).toBe(found.real);
    expect(found.head).toBe('');
  });

  it('looks a name up in the absolute directories of the PATH, in order', async () => {
    const directory = realpathSync(temporaryDirectory());
    mkdirSync(`${directory}/first`);
    mkdirSync(`${directory}/second`);
    script(`${directory}/second/tool`);
    const found = await findExecutable('tool', `:.:relative:${directory}/first:${directory}/second:/usr/bin`, base);
    expect(found).toMatchObject({ path: `${directory}/second/tool`, real: `${directory}/second/tool`, head: '#!/bin/sh\n' });
    script(`${directory}/first/tool`);
    expect(await findExecutable('tool', `${directory}/first/:${directory}/second`, base)).toMatchObject({ path: `${directory}/first/tool` });
  });

  it('never takes a command from the working directory', async () => {
    const directory = temporaryDirectory();
    script(`${directory}/ringfence-test-tool`);
    const before = process.cwd();
    process.chdir(directory);
    try {
      for (const searchPath of ['', '.', ':', './', '..', `../${directory.split('/').pop() ?? ''}`]) {
        expect(await failure('ringfence-test-tool', searchPath)).toMatchObject({ code: 'ENOENT' });
      }
    } finally {
      process.chdir(before);
    }
  });

  it('uses the default of execvp without a PATH', async () => {
    expect((await findExecutable('sh', undefined, base)).real).toBe(realpathSync('/bin/sh'));
  });

  it('reports what child_process would', async () => {
    const error = await failure('ringfence-no-such-thing', '/usr/bin:/bin');
    expect(error).toMatchObject({ code: 'ENOENT', syscall: 'spawn', message: 'spawn ringfence-no-such-thing ENOENT' });
    expect(await failure('/no/such/thing')).toMatchObject({ message: 'spawn /no/such/thing ENOENT' });
    expect(await failure('')).toMatchObject({ code: 'ENOENT' });
    expect(await failure(`/${'x'.repeat(5000)}`)).toMatchObject({ code: 'ENOENT' });
    expect(await failure('x'.repeat(5000), '/usr/bin')).toMatchObject({ code: 'ENOENT' });
  });

  it('finds nothing in a directory of PATH that this account may not search', async (context) => {
    belongsHere(context, process.getuid?.() !== 0, 'as an ordinary user: root may search any');
    const directory = temporaryDirectory();
    mkdirSync(`${directory}/closed`);
    script(`${directory}/closed/thing`);
    chmodSync(`${directory}/closed`, 0o600);
    expect(await failure('thing', `${directory}/closed`)).toMatchObject({ code: 'ENOENT' });
    expect(await failure(`${directory}/closed/thing`)).toMatchObject({ code: 'EACCES' });
  });

  it('remembers that something was found that cannot be executed', async () => {
    const directory = temporaryDirectory();
    mkdirSync(`${directory}/bin/folder`, { recursive: true });
    script(`${directory}/bin/data`, 0o644);
    expect(await failure(`${directory}/bin/data`)).toMatchObject({ code: 'EACCES', message: `spawn ${directory}/bin/data EACCES` });
    expect(await failure(`${directory}/bin/folder`)).toMatchObject({ code: 'EACCES' });
    expect(await failure('data', `${directory}/bin:/usr/bin`)).toMatchObject({ code: 'EACCES', message: 'spawn data EACCES' });
    expect(await failure('/usr/bin')).toMatchObject({ code: 'EACCES' });
    expect(await failure('/etc/passwd')).toMatchObject({ code: 'EACCES' });
    expect(await failure('/dev/null')).toMatchObject({ code: 'EACCES' });
  });

  it('goes on to the next directory behind one that cannot be executed', async () => {
    const directory = realpathSync(temporaryDirectory());
    mkdirSync(`${directory}/env`);
    const found = await findExecutable('env', `${directory}:/usr/bin`, base);
    expect(found.real).toBe(realpathSync('/usr/bin/env'));
  });

  it('tells the place of a link from what it leads to', async () => {
    const directory = realpathSync(temporaryDirectory());
    mkdirSync(`${directory}/v1/bin`, { recursive: true });
    script(`${directory}/v1/tool.sh`);
    symlinkSync('../tool.sh', `${directory}/v1/bin/tool`);
    symlinkSync('v1', `${directory}/current`);
    expect(await findExecutable(`${directory}/current/bin/tool`, undefined, base)).toMatchObject({
      path: `${directory}/current/bin/tool`,
      entry: `${directory}/v1/bin/tool`,
      real: `${directory}/v1/tool.sh`,
    });
  });

  it('spells a command of the host\'s /proc by its real path, as the guest has another /proc', async () => {
    const found = await findExecutable('/proc/self/exe', undefined, base);
    expect(found).toMatchObject({ path: realpathSync(process.execPath), real: realpathSync(process.execPath) });
  });

  it('reads no more of a file than the kernel does', async () => {
    const directory = temporaryDirectory();
    const found = await findExecutable(script(`${directory}/long`, 0o755, `#!/bin/sh ${'x'.repeat(10_000)}`), undefined, base);
    expect(found.head).toHaveLength(256);
    expect((await findExecutable(script(`${directory}/short`, 0o755, '#'), undefined, base)).head).toBe('');
    expect((await findExecutable(script(`${directory}/empty`, 0o755, ''), undefined, base)).head).toBe('');
  });
});
