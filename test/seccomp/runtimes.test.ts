import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
// @ts-expect-error scripts have no declarations
import { nodes as installed } from '../../scripts/lanes/nodes.mjs';
import { FIXTURES, buildLoader, findDeno, missing } from './tools.js';

const PYTHON = '/usr/bin/python3';
const nodes = installed as Map<number, string>;
const needsInet = ['tcp', 'fetch'];

let loader = '';
beforeAll(() => {
  loader = buildLoader();
});

/** The fixture's results under a filter; inet ones are taken apart, for one variant refuses them. */
function results(filter: string, command: string[]): { rest: Record<string, unknown>; inet: unknown[] } {
  const env = { PATH: process.env.PATH ?? '', HOME: tmpdir(), DENO_DIR: join(tmpdir(), 'deno') };
  const all = JSON.parse(execFileSync(loader, [filter, ...command], { encoding: 'utf8', env, timeout: 60_000 })) as Record<string, unknown>;
  const inet = Object.entries(all).filter(([name]) => needsInet.includes(name));
  return { rest: Object.fromEntries(Object.entries(all).filter(([name]) => !needsInet.includes(name))), inet: inet.map(([, result]) => result) };
}

function expectSameUnderFilter(command: string[]): void {
  const control = results('none', command);
  expect(JSON.stringify(control)).not.toContain('ERR');
  expect(results('default', command)).toEqual(control);
  const closed = results('no-inet', command);
  expect(closed.rest).toEqual(control.rest);
  for (const result of closed.inet) expect(result).toMatch(/^ERR/);
}

describe('under both filters', { timeout: 180_000 }, () => {
  it('this Node does all it does without one, but for inet sockets', () => {
    expectSameUnderFilter([process.execPath, join(FIXTURES, 'runtime.mjs')]);
  });

  it.each([...nodes])('so does Node %i', (major, node) => {
    expect(execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' })).toMatch(new RegExp(`^${major}\\.`));
    expectSameUnderFilter([node, join(FIXTURES, 'runtime.mjs')]);
  });

  it('so does Deno', () => {
    expectSameUnderFilter([findDeno(), 'run', '--no-remote', '-A', join(FIXTURES, 'runtime-deno.ts')]);
  });

  it('so does Python', (context) => {
    if (missing(!existsSync(PYTHON) && 'python3 is not installed')) return context.skip();
    expectSameUnderFilter([PYTHON, join(FIXTURES, 'runtime.py')]);
  });

  it.each(['none', 'default', 'no-inet'])('git, npm, tar and the shell do their work (%s)', (filter) => {
    const directory = mkdtempSync(join(tmpdir(), 'tools-'));
    try {
      expect(execFileSync(loader, [filter, '/bin/sh', join(FIXTURES, 'tools.sh'), directory], { encoding: 'utf8', timeout: 90_000 }).trim()).toBe('2');
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
