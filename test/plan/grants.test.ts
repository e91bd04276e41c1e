import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, it } from 'vitest';

import type { Grant } from '../../src/plan/grants.js';
import { resolveGrants } from '../../src/plan/grants.js';
import { belongsHere } from '../support/skip.js';
import { temporaryDirectory } from '../support/temporary.js';

interface Wanted {
  cwd?: string;
  cwdReadOnly?: boolean;
  read?: string[];
  write?: string[];
}

function resolve({ cwd, cwdReadOnly = false, read = [], write = [] }: Wanted) {
  return resolveGrants({ cwd: cwd ?? null, cwdReadOnly, filesystem: { read, write } });
}

async function refused(wanted: Wanted): Promise<string> {
  const error: unknown = await resolve(wanted).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RangeError);
  return (error as Error).message;
}

async function read(...paths: string[]): Promise<Grant[]> {
  return (await resolve({ read: paths })).grants;
}

describe('resolveGrants', () => {
  it('says where each path really is and who owns it', async () => {
    const directory = realpathSync(temporaryDirectory());
    symlinkSync(directory, `${directory}/link`);
    writeFileSync(`${directory}/file`, '');
    const { grants } = await resolve({ read: [`${directory}/link`], write: [`${directory}/file`] });
    const owner = { uid: process.geteuid?.(), gid: process.getegid?.() };
    expect(grants).toEqual([
      { field: 'filesystem.read[0]', given: `${directory}/link`, real: directory, writable: false, ...owner },
      { field: 'filesystem.write[0]', given: `${directory}/file`, real: `${directory}/file`, writable: true, ...owner },
    ]);
  });

  it('resolves dots as the kernel does, and drops slashes at the end', async () => {
    const directory = realpathSync(temporaryDirectory());
    mkdirSync(`${directory}/a/b`, { recursive: true });
    symlinkSync('a/b', `${directory}/link`);
    const [dots, slashes] = await read(`${directory}/link/..`, `${directory}//a///`);
    // By the text alone it would be the directory above.
    expect(dots?.real).toBe(`${directory}/a`);
    expect(slashes).toMatchObject({ given: `${directory}/a`, real: `${directory}/a` });
  });

  it('takes names with newlines, spaces and any letters', async () => {
    const directory = realpathSync(temporaryDirectory());
    const names = ['a\nb', ' ', 'größe', '💡', '$(id)', 'a:b,c\\d'];
    for (const name of names) mkdirSync(path.join(directory, name));
    const grants = await read(...names.map((name) => path.join(directory, name)));
    expect(grants.map(({ real }) => real)).toEqual(names.map((name) => path.join(directory, name)));
  });

  it('takes FIFOs and sockets', async () => {
    const directory = realpathSync(temporaryDirectory());
    execFileSync('mkfifo', [`${directory}/fifo`]);
    expect(await read(`${directory}/fifo`)).toHaveLength(1);
  });

  it.each(['/', '//', '/usr/..', '/proc', '/proc/self', '/proc/../proc/1/root', '/sys', '/sys/fs/cgroup', '/dev', '/dev/null', '/dev/shm'])('refuses %s', async (given) => {
    expect(await refused({ read: [given] })).toMatch(/^filesystem\.read\[0\] \(.*\) must not (be the root directory|lie in \/proc, \/sys or \/dev)$/);
    expect(await refused({ write: ['/usr', given] })).toMatch(/^filesystem\.write\[1\] /);
  });

  it('refuses links to such places, whatever they are called', async () => {
    const directory = temporaryDirectory();
    for (const target of ['/', '/proc/self', '/dev/zero', '/sys']) {
      const link = path.join(directory, target.replaceAll('/', '_'));
      symlinkSync(target, link);
      expect(await refused({ read: [link] })).toMatch(/must not/);
    }
  });

  it('refuses devices wherever they are', async (context) => {
    belongsHere(context, process.getuid?.() === 0, 'as root, who can make a device');
    const directory = temporaryDirectory();
    execFileSync('mknod', [`${directory}/null`, 'c', '1', '3']);
    expect(await refused({ read: [`${directory}/null`] })).toBe(`filesystem.read[0] (${directory}/null) must not be a device`);
  });

  it('names the field and the path that is missing', async () => {
    expect(await refused({ read: ['/nope'] })).toBe('filesystem.read[0] (/nope) must exist');
    expect(await refused({ read: ['/usr', '/usr/nope/x'] })).toBe('filesystem.read[1] (/usr/nope/x) must exist');
    const directory = temporaryDirectory();
    symlinkSync('nowhere', `${directory}/dangling`);
    expect(await refused({ write: [`${directory}/dangling`] })).toMatch(/ must exist$/);
  });

  it('says what is wrong with a path that cannot be followed', async () => {
    const directory = temporaryDirectory();
    symlinkSync('loop', `${directory}/loop`);
    expect(await refused({ read: [`${directory}/loop`] })).toMatch(/must be a path that can be resolved: ELOOP$/);
    writeFileSync(`${directory}/file`, '');
    expect(await refused({ read: [`${directory}/file/`] })).toMatch(/ENOTDIR$/);
    expect(await refused({ read: [`/${'x'.repeat(300)}`] })).toMatch(/ENAMETOOLONG$/);
    expect(await refused({ read: [`/${'xyz/'.repeat(1500)}`] })).toMatch(/must be shorter than 4096 bytes$/);
  });

  it('shows a hostile path in one bounded line', async () => {
    const message = await refused({ read: [`/nope\n\u001b[31m${'x/'.repeat(1000)}`] });
    expect(message).not.toMatch(/[\n\u001b]/);
    expect(message.length).toBeLessThan(300);
  });

  it('refuses what this account may not see', async (context) => {
    belongsHere(context, process.getuid?.() !== 0, 'as an ordinary user, who can be kept out');
    const directory = temporaryDirectory();
    mkdirSync(`${directory}/shut/in`, { recursive: true });
    chmodSync(`${directory}/shut`, 0);
    expect(await refused({ read: [`${directory}/shut/in`] })).toMatch(/must be accessible to this account: EACCES$/);
  });

  it('refuses a link to a name that is not UTF-8, which no plan can spell', async () => {
    const directory = temporaryDirectory();
    const name = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0xff, 0xfe])]);
    mkdirSync(name);
    symlinkSync(name, `${directory}/link`);
    expect(await refused({ read: [`${directory}/link`] })).toMatch(/must not lead to a name that is not UTF-8$/);
  });
});

describe('a cwd of the caller', () => {
  it('is writable unless the caller says otherwise', async () => {
    const directory = realpathSync(temporaryDirectory());
    expect((await resolve({ cwd: directory })).cwd).toMatchObject({ field: 'cwd', real: directory, writable: true });
    expect((await resolve({ cwd: directory, cwdReadOnly: true })).cwd).toMatchObject({ writable: false });
  });

  it('is reported without symlinks', async () => {
    const directory = realpathSync(temporaryDirectory());
    mkdirSync(`${directory}/real`);
    symlinkSync('real', `${directory}/link`);
    expect((await resolve({ cwd: `${directory}/link/` })).cwd).toMatchObject({ given: `${directory}/link`, real: `${directory}/real` });
  });

  it('must be a directory that exists', async () => {
    const directory = temporaryDirectory();
    writeFileSync(`${directory}/file`, '');
    expect(await refused({ cwd: `${directory}/nope` })).toBe(`cwd (${directory}/nope) must exist`);
    expect(await refused({ cwd: `${directory}/file` })).toBe(`cwd (${directory}/file) must be a directory`);
  });

  it('can be the root directory only read-only, and never lies in /proc', async () => {
    expect((await resolve({ cwd: '/', cwdReadOnly: true })).cwd?.real).toBe('/');
    expect(await refused({ cwd: '/' })).toMatch(/^cwd \(\/\) must not be the root directory/);
    expect(await refused({ cwd: '/proc/self', cwdReadOnly: true })).toMatch(/^cwd \(\/proc\/self\) must not lie in/);
  });
});
