import { lstatSync, realpathSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import type { HostEntry } from '../../src/plan/base-view.js';
import { isInBaseView, layBaseView, readBaseView } from '../../src/plan/base-view.js';

const directory = (path: string): HostEntry => ({ kind: 'directory', path, real: path, target: null });
const link = (path: string, target: string, real: string): HostEntry => ({ kind: 'link', path, target, real });
const bound = (path: string, source = path) => expect.objectContaining({ kind: 'bind', path, source, writable: false, idMap: 'none' });

describe('layBaseView', () => {
  it('keeps the links of a merged /usr as the host has them', () => {
    const { mounts, binds } = layBaseView(
      [directory('/usr'), link('/bin', 'usr/bin', '/usr/bin'), link('/lib64', '/usr/lib64', '/usr/lib64')],
      [],
      [],
    );
    expect(binds).toEqual(['/usr']);
    expect(mounts).toContainEqual(bound('/usr'));
    expect(mounts).toContainEqual({ kind: 'symlink', path: '/bin', target: 'usr/bin' });
    expect(mounts).toContainEqual({ kind: 'symlink', path: '/lib64', target: '/usr/lib64' });
  });

  it('binds the directories of a split layout', () => {
    const { mounts, binds } = layBaseView(['/usr', '/bin', '/sbin', '/lib', '/lib64'].map(directory), [], []);
    expect(binds).toEqual(['/usr', '/bin', '/sbin', '/lib', '/lib64']);
    for (const path of binds) expect(mounts).toContainEqual(bound(path));
    expect(mounts.filter(({ kind }) => kind === 'symlink').every(({ path }) => path.startsWith('/dev/'))).toBe(true);
  });

  it('leads a link past stops that are not in the view', () => {
    const { mounts } = layBaseView([directory('/nix/store')], [link('/etc/localtime', '/etc/static/zone', '/nix/store/abc/zone')], []);
    expect(mounts).toContainEqual({ kind: 'symlink', path: '/etc/localtime', target: '/nix/store/abc/zone' });
  });

  it('binds what a link out of the view leads to in its place, and nothing beside it', () => {
    const { mounts } = layBaseView(
      [link('/usr', 'System', '/System')],
      [link('/etc/ssl/certs', '../pki/tls/certs', '/etc/pki/tls/certs'), { kind: 'file', path: '/etc/ld.so.cache', real: '/etc/ld.so.cache', target: null }],
      [],
    );
    expect(mounts).toContainEqual(bound('/usr', '/System'));
    expect(mounts).toContainEqual(bound('/etc/ssl/certs', '/etc/pki/tls/certs'));
    expect(mounts).toContainEqual(bound('/etc/ld.so.cache'));
  });

  it('lists parents before what lies below them', () => {
    const { mounts } = layBaseView(['/usr', '/lib', '/bin'].map(directory), [], []);
    const paths = mounts.map(({ path }) => path);
    expect(paths).toEqual([...paths].sort());
  });
});

describe('readBaseView', () => {
  it('finds what this host has, each source without symlinks', async () => {
    const { mounts, binds } = await readBaseView(process.env['PATH']);
    expect(binds).toContain('/usr');
    for (const mount of mounts) {
      if (mount.kind === 'bind') expect(realpathSync(mount.source)).toBe(mount.source);
      if (mount.kind === 'symlink' && !mount.path.startsWith('/dev/')) expect(lstatSync(mount.path).isSymbolicLink()).toBe(true);
    }
    expect(mounts.filter(({ kind }) => kind === 'device').map(({ path }) => path)).toEqual(
      ['full', 'null', 'random', 'urandom', 'zero'].map((name) => `/dev/${name}`),
    );
  });

  it('shows nothing of where data and secrets are', async () => {
    const { mounts } = await readBaseView(process.env['PATH']);
    const paths = mounts.map(({ path }) => path);
    expect(paths.filter((path) => /^\/(root|home|var|run|srv|opt|mnt|media|tmp|proc|sys|boot)(\/|$)/.test(path))).toEqual([]);
    expect(paths.filter((path) => /private|shadow|passwd$/.test(path))).toEqual([]);
    expect(paths).not.toContain('/etc');
    expect(paths).not.toContain('/etc/ssl');
  });

  it('knows the command directories by every name, but only those of the view', async () => {
    const { commandDirectories } = await readBaseView('/usr/bin:/usr/bin/../bin:/tmp:/proc/self/cwd:relative::/usr/bin/');
    expect(commandDirectories.get('/bin')).toBe(realpathSync('/bin'));
    expect([...commandDirectories.keys()].filter((path) => !/^\/(usr\/)?(local\/)?(s?bin|games)$/.test(path))).toEqual([]);
  });

  it('knows its own links as part of the view', async () => {
    const view = await readBaseView('');
    expect(isInBaseView(view, '/bin/sh')).toBe(true);
    expect(isInBaseView(view, '/usrlocal')).toBe(false);
    expect(isInBaseView(view, '/root')).toBe(false);
  });
});
