import { describe, expect, it } from 'vitest';

import { planEnvironment } from '../../src/plan/environment.js';

const execPath = '/opt/node/bin/node22';
const host = { PATH: '/bin', HOME: '/home/u', TMPDIR: '/var/tmp', SECRET: 'x', NODE_OPTIONS: '--inspect' };

function plan(options: { command?: string; env?: Record<string, string>; nodeHeapMb?: number }, hostEnv: Record<string, string> = host) {
  const { command = '/bin/true', env = {}, nodeHeapMb = null } = options;
  return planEnvironment({ command, env, nodeHeapMb }, hostEnv, execPath);
}

describe('planEnvironment', () => {
  it('passes on PATH, HOME and TMPDIR of the host and nothing else', () => {
    expect(plan({}).env).toEqual({ PATH: '/bin', HOME: '/home/u', TMPDIR: '/var/tmp' });
  });

  it('leaves out what the host does not have, and keeps what is empty', () => {
    expect(plan({}, { HOME: '' }).env).toEqual({ HOME: '' });
  });

  it('lets the caller override each by name', () => {
    expect(plan({ env: { PATH: '/x', HOME: '/y', TMPDIR: '/z', MORE: '1' } }).env).toEqual({ PATH: '/x', HOME: '/y', TMPDIR: '/z', MORE: '1' });
  });

  it('treats __proto__ as a name like any other', () => {
    const env = JSON.parse('{"__proto__": "v"}') as Record<string, string>;
    expect(Object.entries(plan({ env }, {}).env)).toEqual([['__proto__', 'v']]);
  });

  it.each(['node', '/usr/local/bin/node', execPath])('gives %s its heap', (command) => {
    expect(plan({ command, nodeHeapMb: 64 })).toMatchObject({ nodeHeapMbApplied: 64, env: { NODE_OPTIONS: '--max-old-space-size=64' } });
  });

  it('appends to NODE_OPTIONS of the caller, so that the limit wins', () => {
    const { env } = plan({ command: 'node', nodeHeapMb: 64, env: { NODE_OPTIONS: '--max-old-space-size=9000 --no-warnings' } });
    expect(env['NODE_OPTIONS']).toBe('--max-old-space-size=9000 --no-warnings --max-old-space-size=64');
  });

  it('writes no leading space after empty NODE_OPTIONS', () => {
    expect(plan({ command: 'node', nodeHeapMb: 64, env: { NODE_OPTIONS: '' } }).env['NODE_OPTIONS']).toBe('--max-old-space-size=64');
  });

  it.each(['/bin/true', 'nodejs', '/usr/bin/node/deno', 'node.exe'])('does nothing of the kind for %s', (command) => {
    const { env, nodeHeapMbApplied } = plan({ command, nodeHeapMb: 64 });
    expect(nodeHeapMbApplied).toBeNull();
    expect(env).not.toHaveProperty('NODE_OPTIONS');
  });

  it('applies no heap that was not asked for', () => {
    expect(plan({ command: 'node' })).toMatchObject({ nodeHeapMbApplied: null, env: { PATH: '/bin' } });
  });
});
