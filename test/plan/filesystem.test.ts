import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import type { BaseView, HostEntry } from '../../src/plan/base-view.js';
import { layBaseView } from '../../src/plan/base-view.js';
import type { ViewParts } from '../../src/plan/filesystem.js';
import { layFilesystem } from '../../src/plan/filesystem.js';
import type { Mount } from '../../src/plan/plan.js';
import { grantOf } from './planning.js';

const entries: HostEntry[] = [
  { kind: 'directory', path: '/usr', real: '/usr', target: null },
  { kind: 'link', path: '/bin', real: '/usr/bin', target: 'usr/bin' },
  { kind: 'directory', path: '/nix/store', real: '/nix/store', target: null },
];
const configuration: HostEntry[] = [{ kind: 'file', path: '/etc/ld.so.cache', real: '/etc/ld.so.cache', target: null }];
const base: BaseView = { ...layBaseView(entries, configuration, []), commandDirectories: new Map() };
const passwd: Mount = { kind: 'file', path: '/etc/passwd', mode: 0o644, content: '' };

function lay(change: Partial<ViewParts> & { directories?: string[] } = {}): Mount[] {
  const { directories = ['/tmp', '/home/u'], ...rest } = change;
  return layFilesystem({
    base,
    grants: [],
    runtime: { binds: new Map(), links: new Map() },
    scratch: { directories: directories.map((path) => ({ path, mode: 0o700 })), links: new Map(), ownedCwd: null },
    files: [passwd],
    writableIdMap: 'required',
    ...rest,
  });
}

/** What is mounted beyond the base view, in a word each. */
function added(mounts: Mount[]): string[] {
  const known = new Set(lay({ directories: [] }).map(({ path, kind }) => `${kind} ${path}`));
  return mounts
    .filter(({ path, kind }) => !known.has(`${kind} ${path}`))
    .map((mount) => {
      if (mount.kind === 'bind') return `${mount.writable ? 'rw' : 'ro'} ${mount.path} ${mount.idMap}`;
      return mount.kind === 'symlink' ? `${mount.path} -> ${mount.target}` : `${mount.kind} ${mount.path}`;
    });
}

const rw = (path: string, uid = 0) => grantOf(path, { writable: true, uid });
const ro = (path: string, uid = 0) => grantOf(path, { uid });
const runtimeOf = (...paths: [string, number][]) => ({ binds: new Map(paths.map(([path, mode]) => [path, { path, mode }])), links: new Map<string, string>() });

describe('layFilesystem', () => {
  it('puts base view, made-up files and scratch together, parents first', () => {
    const paths = lay().map(({ path }) => path);
    expect(paths).toEqual([...paths].sort());
    expect(paths).toEqual(expect.arrayContaining(['/bin', '/etc/ld.so.cache', '/etc/passwd', '/home/u', '/nix/store', '/tmp', '/usr']));
  });

  it('binds grants inside scratch after it', () => {
    const paths = lay({ grants: [rw('/tmp/work'), ro('/home/u/project')] }).map(({ path }) => path);
    expect(paths.indexOf('/tmp/work')).toBeGreaterThan(paths.indexOf('/tmp'));
    expect(paths.indexOf('/home/u/project')).toBeGreaterThan(paths.indexOf('/home/u'));
  });

  it('idmaps what is granted where the guest is another account, and never otherwise', () => {
    const grants = [rw('/a'), ro('/b')];
    expect(added(lay({ grants, directories: [] }))).toEqual(['rw /a required', 'ro /b optional']);
    expect(added(lay({ grants, directories: [], writableIdMap: 'optional' }))).toEqual(['rw /a optional', 'ro /b optional']);
    expect(added(lay({ grants, directories: [], writableIdMap: 'none' }))).toEqual(['rw /a none', 'ro /b none']);
  });
});

describe('nested grants', () => {
  const none = { directories: [], writableIdMap: 'none' as const };

  it('names a path once, writable if either says so', () => {
    expect(added(lay({ ...none, grants: [ro('/a'), rw('/a'), ro('/a')] }))).toEqual(['rw /a none']);
  });

  it('leaves out what changes nothing, in whatever order it comes', () => {
    expect(added(lay({ ...none, grants: [ro('/a/b/c'), ro('/a'), ro('/a/b')] }))).toEqual(['ro /a none']);
    expect(added(lay({ ...none, grants: [rw('/a'), rw('/a/b')] }))).toEqual(['rw /a none']);
  });

  it('lets the innermost count: writable below read-only, read-only below writable', () => {
    expect(added(lay({ ...none, grants: [rw('/a/b'), ro('/a'), ro('/a/b/c')] }))).toEqual(['ro /a none', 'rw /a/b none', 'ro /a/b/c none']);
  });

  it('takes no neighbour for a child', () => {
    expect(added(lay({ ...none, grants: [ro('/a'), ro('/ab'), ro('/a-b')] }))).toEqual(['ro /a none', 'ro /a-b none', 'ro /ab none']);
  });

  it('keeps an inner grant of another owner, which the outer map would not show as the guest', () => {
    expect(added(lay({ directories: [], grants: [ro('/a'), ro('/a/b', 5)] }))).toEqual(['ro /a optional', 'ro /a/b optional']);
    expect(added(lay({ directories: [], grants: [ro('/a'), ro('/a/b')] }))).toEqual(['ro /a optional']);
  });

  it('leaves out what the base view shows anyway, and keeps what is more', () => {
    expect(added(lay({ ...none, grants: [ro('/usr/share'), ro('/usr'), rw('/usr/local')] }))).toEqual(['rw /usr/local none']);
    expect(added(lay({ directories: [], grants: [ro('/usr/private')] }))).toEqual(['ro /usr/private optional']);
  });

  it('replaces parts of the base view that a grant covers', () => {
    const mounts = lay({ ...none, grants: [rw('/usr'), rw('/nix'), ro('/etc')] });
    expect(mounts.filter(({ path }) => path.startsWith('/usr') || path.startsWith('/nix') || path.startsWith('/etc'))).toEqual([
      expect.objectContaining({ path: '/etc', writable: false }),
      expect.objectContaining({ path: '/nix', writable: true }),
      expect.objectContaining({ path: '/usr', writable: true }),
    ]);
  });

  it('writes no made-up file over a granted one', () => {
    const mounts = lay({ ...none, grants: [rw('/etc/passwd')] }).filter(({ path }) => path === '/etc/passwd');
    expect(mounts).toEqual([expect.objectContaining({ kind: 'bind', source: '/etc/passwd' })]);
  });

  it('binds nothing for a cwd that is the root directory', () => {
    expect(added(lay({ ...none, grants: [grantOf('/')] }))).toEqual([]);
  });
});

describe('names that are links', () => {
  const none = { directories: [], writableIdMap: 'none' as const };
  const linked = (given: string, real: string, writable = false) => grantOf(real, { given, writable });

  it('binds the real path and makes the given one a link to it', () => {
    expect(added(lay({ ...none, grants: [linked('/a/link', '/b')] }))).toEqual(['/a/link -> /b', 'ro /b none']);
  });

  it('makes none where the host\'s own link is in sight', () => {
    expect(added(lay({ ...none, grants: [ro('/a'), linked('/a/link', '/b')] }))).toEqual(['ro /a none', 'ro /b none']);
    expect(added(lay({ ...none, grants: [linked('/bin/x', '/usr/bin/x', true)] }))).toEqual(['rw /usr/bin/x none']);
    expect(added(lay({ ...none, grants: [linked('/bin', '/usr/bin', true)] }))).toEqual(['rw /usr/bin none']);
  });

  it('makes none below another link, through which it is reached', () => {
    expect(added(lay({ ...none, grants: [linked('/l/x', '/r/x', true), linked('/l', '/r')] }))).toEqual(['/l -> /r', 'ro /r none', 'rw /r/x none']);
  });

  it('makes the link of a home whose real directory is granted', () => {
    const scratch = { directories: [], links: new Map([['/home/u', '/data/u']]), ownedCwd: null };
    expect(added(lay({ ...none, grants: [ro('/data')], scratch }))).toEqual(['ro /data none', '/home/u -> /data/u']);
  });
});

describe('files of the runtime', () => {
  it('shows them as they are where others may read them, else as their owner', () => {
    const runtime = runtimeOf(['/opt/x/bin', 0o40755], ['/opt/x/lib', 0o40700], ['/srv/tool', 0o100711]);
    expect(added(lay({ directories: [], runtime }))).toEqual(['ro /opt/x/bin none', 'ro /opt/x/lib optional', 'ro /srv/tool optional']);
    expect(added(lay({ directories: [], runtime, writableIdMap: 'none' }))).toEqual(['ro /opt/x/bin none', 'ro /opt/x/lib none', 'ro /srv/tool none']);
  });

  it('gives way to a grant', () => {
    const runtime = runtimeOf(['/w/node_modules', 0o40755]);
    expect(added(lay({ directories: [], runtime, grants: [rw('/w')] }))).toEqual(['rw /w required']);
    expect(added(lay({ directories: [], runtime, grants: [rw('/w/node_modules/.cache')] }))).toEqual([
      'ro /w/node_modules none',
      'rw /w/node_modules/.cache required',
    ]);
  });

  it('is bound once', () => {
    const runtime = runtimeOf(['/o/lib', 0o40755], ['/o/lib/node_modules', 0o40755], ['/o/lib/shut', 0o40700]);
    expect(added(lay({ directories: [], runtime }))).toEqual(['ro /o/lib none', 'ro /o/lib/shut optional']);
  });
});

describe('any set of grants', () => {
  const part = fc.constantFrom('a', 'b', 'usr', 'bin', 'etc', 'nix', 'store', 'tmp', 'home', 'u');
  const anyPath = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => `/${parts.join('/')}`);
  const anyGrant = fc.record({ path: anyPath, writable: fc.boolean(), uid: fc.constantFrom(0, 5) });

  it('names each path once, parents first, and nothing the plan makes lies in a bind of the host', () => {
    fc.assert(
      fc.property(fc.array(anyGrant, { maxLength: 8 }), (wanted) => {
        // On a host where /bin is a link no real path lies below it.
        const grants = wanted.filter(({ path }) => !/^\/bin(\/|$)/.test(path)).map(({ path, writable, uid }) => grantOf(path, { writable, uid }));
        const mounts = lay({ grants, directories: [] });
        const paths = mounts.map(({ path }) => path);
        expect(new Set(paths).size).toBe(paths.length);
        expect(paths).toEqual([...paths].sort());
        for (const mount of mounts) {
          if (mount.kind === 'bind' || mount.kind === 'pin') continue;
          const around = mounts.filter((other) => other.kind === 'bind' && mount.path.startsWith(`${other.path}/`));
          expect(around).toEqual([]);
        }
      }),
    );
  });

  it('pins every directory between a writable grant and a read-only one inside it, and no other', () => {
    const pins = (grants: ReturnType<typeof grantOf>[]) => lay({ grants, directories: [] }).filter(({ kind }) => kind === 'pin').map(({ path }) => path);
    const outer = grantOf('/data', { writable: true });
    expect(pins([outer, grantOf('/data/a/b/c', { writable: false })])).toEqual(['/data/a', '/data/a/b']);
    expect(pins([outer, grantOf('/data/a', { writable: false })])).toEqual([]);
    expect(pins([outer, grantOf('/data/a/b/c', { writable: true })])).toEqual([]);
    expect(pins([grantOf('/data', { writable: false }), grantOf('/data/a/b/c', { writable: true })])).toEqual([]);
  });

  it('gives every path the access of the innermost grant around it', () => {
    fc.assert(
      fc.property(fc.array(anyGrant, { maxLength: 8 }), anyPath, (wanted, path) => {
        const usable = wanted.filter((grant) => !/^\/bin(\/|$)/.test(grant.path));
        const mounts = lay({ grants: usable.map((grant) => grantOf(grant.path, grant)), directories: [] });
        const inside = (ancestor: string) => path === ancestor || path.startsWith(`${ancestor}/`);
        const innermost = (paths: string[]) => paths.filter(inside).sort((a, b) => b.length - a.length)[0];
        const grant = innermost(usable.map((each) => each.path));
        const expected = grant !== undefined && usable.some((each) => each.path === grant && each.writable);
        const bind = innermost(mounts.filter(({ kind }) => kind === 'bind').map((mount) => mount.path));
        const actual = mounts.some((mount) => mount.kind === 'bind' && mount.path === bind && mount.writable);
        // A base directory inside a grant belongs to the grant.
        expect(actual).toBe(expected);
      }),
    );
  });

  it('refuses more mounts than a launch can have', () => {
    const grants = Array.from({ length: 300 }, (_, index) => grantOf(`/many/${index}`));
    expect(() => lay({ grants })).toThrow(/^filesystem must name fewer paths: this run needs \d+ mounts, a sandbox can have 256$/);
  });
});
