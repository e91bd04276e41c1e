import { mkdirSync, realpathSync, symlinkSync } from 'node:fs';

import { beforeAll, describe, expect, it } from 'vitest';

import type { BaseView } from '../../src/plan/base-view.js';
import { readBaseView } from '../../src/plan/base-view.js';
import type { Mount } from '../../src/plan/plan.js';
import type { ScratchInput } from '../../src/plan/scratch.js';
import { planScratch } from '../../src/plan/scratch.js';
import { temporaryDirectory } from '../support/temporary.js';
import { grantOf } from './planning.js';

let base: BaseView;
beforeAll(async () => {
  base = await readBaseView('');
});

async function scratchOf(change: Partial<ScratchInput> = {}) {
  const input: ScratchInput = { base, home: '/home/u', tmpdir: undefined, hostTmpdir: '/tmp', grants: [], ownsCwd: true, ...change };
  const { directories, links, ownedCwd } = await planScratch(input);
  return { modes: Object.fromEntries(directories.map(({ path, mode }) => [path, mode])), links: Object.fromEntries(links), ownedCwd };
}

const bindOf = (path: string): Mount => ({ kind: 'bind', path, source: path, writable: false, idMap: 'none', mayBeMissing: false });

const refused = (change: Partial<ScratchInput>) => expect(scratchOf(change)).rejects;

describe('planScratch', () => {
  it('makes /tmp and /dev/shm for everybody, HOME and an owned cwd for the guest', async () => {
    const { modes, ownedCwd } = await scratchOf();
    expect(ownedCwd).toMatch(/^\/tmp\/ringfence-[0-9a-f]{12}$/);
    expect(modes).toEqual({ '/tmp': 0o1777, '/dev/shm': 0o1777, '/home/u': 0o700, [ownedCwd ?? '']: 0o700 });
  });

  it('puts the owned cwd below os.tmpdir(), which need not exist', async () => {
    const { modes, ownedCwd } = await scratchOf({ hostTmpdir: '/nowhere/tmp', tmpdir: '/nowhere/tmp' });
    expect(ownedCwd).toMatch(/^\/nowhere\/tmp\/ringfence-/);
    expect(modes['/nowhere/tmp']).toBe(0o700);
  });

  it("makes the guest's own TMPDIR as well, where it has another", async () => {
    const { modes, ownedCwd } = await scratchOf({ hostTmpdir: '/var/tmp', tmpdir: '/t/../scratch/' });
    expect(ownedCwd).toMatch(/^\/var\/tmp\//);
    expect(modes).toMatchObject({ '/var/tmp': 0o700, '/scratch': 0o700 });
  });

  it('makes no cwd where the caller gave one', async () => {
    expect(await scratchOf({ ownsCwd: false })).toMatchObject({ ownedCwd: null });
  });

  it.each([undefined, '', '/', 'relative', './home', '/proc/1', '/sys', '/dev', '/etc', '/usr', '/usr/sbin', '/bin', '/etc/ssl/certs/below', '/nonexistent/../usr'])(
    'makes no scratch of HOME=%s, which would hide the view or none that can be',
    async (home) => {
      const { modes, ownedCwd } = await scratchOf({ home });
      expect(Object.keys(modes).sort()).toEqual(['/dev/shm', '/tmp', ownedCwd].sort());
    },
  );

  it('can have HOME or TMPDIR below /dev/shm, and next to the made-up files of /etc', async () => {
    const { modes, ownedCwd } = await scratchOf({ home: '/etc/home', hostTmpdir: '/dev/shm/x' });
    expect(modes).toMatchObject({ '/etc/home': 0o700, '/dev/shm/x': 0o700 });
    expect(ownedCwd).toMatch(/^\/dev\/shm\/x\/ringfence-/);
  });

  it('lets the owned cwd be where nothing else can be', async () => {
    expect((await scratchOf({ hostTmpdir: '/' })).ownedCwd).toMatch(/^\/ringfence-/);
    expect((await scratchOf({ hostTmpdir: '/etc' })).ownedCwd).toMatch(/^\/etc\/ringfence-/);
  });

  it('follows TMPDIR through a link of the system directories to what is outside of them', async () => {
    const target = realpathSync(temporaryDirectory());
    const link = `${target}/system/tmp`;
    mkdirSync(`${target}/system/real`, { recursive: true });
    symlinkSync('../', link);
    symlinkSync('real', `${target}/system/inner`);
    const system = { ...base, mounts: [...base.mounts, bindOf(`${target}/system`)], binds: [...base.binds, `${target}/system`] };
    const through = (path: string) => scratchOf({ base: system, hostTmpdir: path, tmpdir: path, ownsCwd: false });
    // What it leads to must not hold a part of the view either.
    expect((await through(link)).modes).not.toHaveProperty(target);
    const outside = realpathSync(temporaryDirectory());
    symlinkSync(outside, `${target}/system/out`);
    expect((await through(`${target}/system/out`)).modes).toHaveProperty([outside], 0o700);
    expect((await scratchOf({ base: system, hostTmpdir: `${target}/system/out` })).ownedCwd).toMatch(`${outside}/ringfence-`);
    expect(Object.keys((await through(`${target}/system/inner`)).modes)).not.toContain(`${target}/system/real`);
  });

  it.each(['/usr/no-such-directory', '/usr/share', '/usr/lib', '/usr/bin', '/bin', '/etc/ssl/certs/below', '/proc/1'])(
    'makes no scratch of TMPDIR=%s, which would hide system files or cannot be made',
    async (path) => {
      expect(Object.keys((await scratchOf({ tmpdir: path, hostTmpdir: path, ownsCwd: false })).modes)).toEqual(['/tmp', '/dev/shm', '/home/u']);
      await refused({ hostTmpdir: path }).toThrow(`cwd (absent) must be given while os.tmpdir() is ${path}, where the sandbox can make none`);
      await refused({ hostTmpdir: path }).toThrow(RangeError);
    },
  );
});

describe('scratch and grants', () => {
  it('leaves HOME to a grant that is it, or holds it', async () => {
    for (const path of ['/home/u', '/home']) {
      expect((await scratchOf({ grants: [grantOf(path)] })).modes).not.toHaveProperty('/home/u');
    }
    expect((await scratchOf({ grants: [grantOf('/home/u/project'), grantOf('/home/u2')] })).modes).toHaveProperty('/home/u');
  });

  it('leaves /tmp to a grant where the cwd is the caller\'s', async () => {
    expect((await scratchOf({ grants: [grantOf('/tmp')], ownsCwd: false })).modes).not.toHaveProperty('/tmp');
  });

  it('refuses a grant that holds os.tmpdir() while the sandbox needs a cwd there', async () => {
    const grants = [grantOf('/usr/x'), grantOf('/var', { field: 'filesystem.write[0]' })];
    await refused({ hostTmpdir: '/var/tmp', grants }).toThrow(
      new RangeError('filesystem.write[0] (/var) must not contain os.tmpdir() (/var/tmp) unless cwd is given'),
    );
    await refused({ hostTmpdir: '/var', grants }).toThrow(RangeError);
    expect((await scratchOf({ hostTmpdir: '/var/tmp', grants: [grantOf('/var/tmp/x')] })).ownedCwd).toMatch(/^\/var\/tmp\//);
  });

  it('knows HOME and os.tmpdir() by their real paths too', async () => {
    const root = realpathSync(temporaryDirectory());
    mkdirSync(`${root}/real/home`, { recursive: true });
    symlinkSync('real', `${root}/link`);
    const grants = [grantOf(`${root}/real`)];
    const { modes, links } = await scratchOf({ home: `${root}/link/home`, grants });
    expect(modes).not.toHaveProperty(`${root}/link/home`);
    expect(links).toEqual({ [`${root}/link/home`]: `${root}/real/home` });
    await refused({ hostTmpdir: `${root}/link/home`, grants }).toThrow(/must not contain os\.tmpdir/);
    // By the name that the caller gave the grant.
    await refused({ hostTmpdir: '/a/tmp', grants: [grantOf('/b', { given: '/a' })] }).toThrow(/must not contain os\.tmpdir/);
  });
});
