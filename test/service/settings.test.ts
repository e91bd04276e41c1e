import { availableParallelism } from 'node:os';

import { describe, expect, it } from 'vitest';

import { readSettings, SettingError, settingTable } from '../../src/service/settings.js';

describe('settings of the service', () => {
  it('has defaults for all of them', () => {
    expect(readSettings({ DENO_BIN: '/opt/deno' })).toEqual({
      host: '127.0.0.1',
      port: 8787,
      runtime: 'deno',
      denoBin: '/opt/deno',
      brokerUrl: null,
      token: null,
      concurrency: 4 * availableParallelism(),
      queueLength: 256,
      warm: 0,
      page: false,
      maxBodyBytes: 2 * 1024 * 1024,
      isolation: 'strict',
      logLevel: 'info',
    });
  });

  it('reads each of its variables', () => {
    const settings = readSettings({
      PORT: '0',
      HOST: '0.0.0.0',
      SANDBOX_TOKEN: 'abc',
      SANDBOX_BROKER_URL: 'http://broker.test/rpc',
      DENO_BIN: '/opt/deno',
      RINGFENCE_RUNTIME: 'node',
      RINGFENCE_CONCURRENCY: '3',
      RINGFENCE_QUEUE: '0',
      RINGFENCE_WARM: '2',
      RINGFENCE_PAGE: '1',
      RINGFENCE_MAX_BODY: '4096',
      RINGFENCE_ISOLATION: 'best-effort',
      RINGFENCE_LOG_LEVEL: 'warn',
    });
    expect(settings).toEqual({
      port: 0,
      host: '0.0.0.0',
      token: 'abc',
      brokerUrl: 'http://broker.test/rpc',
      denoBin: '/opt/deno',
      runtime: 'node',
      concurrency: 3,
      queueLength: 0,
      warm: 2,
      page: true,
      maxBodyBytes: 4096,
      isolation: 'best-effort',
      logLevel: 'warn',
    });
  });

  it('takes what was given before the environment, and an empty variable for an absent one', () => {
    const settings = readSettings({ PORT: '1', HOST: '', RINGFENCE_QUEUE: '7' }, { port: '2' });
    expect(settings).toMatchObject({ port: 2, host: '127.0.0.1', queueLength: 7 });
  });

  it.each([
    ['PORT', '65536'],
    ['PORT', '80a'],
    ['PORT', '-1'],
    ['HOST', 'a b'],
    ['SANDBOX_BROKER_URL', 'ftp://broker.test'],
    ['SANDBOX_BROKER_URL', 'broker.test'],
    ['RINGFENCE_RUNTIME', 'bun'],
    ['RINGFENCE_CONCURRENCY', '0'],
    ['RINGFENCE_QUEUE', '1.5'],
    ['RINGFENCE_WARM', 'many'],
    ['RINGFENCE_PAGE', 'yes'],
    ['RINGFENCE_MAX_BODY', '2M'],
    ['RINGFENCE_ISOLATION', 'none'],
    ['RINGFENCE_LOG_LEVEL', 'loud'],
  ])('%s=%s is an error that names it', (name, value) => {
    const message = problem({ [name]: value });
    expect(message).toMatch(new RegExp(`^${name} must be .*, not ${JSON.stringify(value)}$`));
  });

  it('names the flag where the value came from a flag', () => {
    expect(() => readSettings({}, { concurrency: 'x' })).toThrow(/^--concurrency must be a whole number from 1 to 10000, not "x"$/);
    expect(() => readSettings({}, { concurrency: '' })).toThrow(/^--concurrency must be/);
  });

  it('does not repeat a token that cannot be one', () => {
    expect(problem({ SANDBOX_TOKEN: 'my secret' })).toBe('SANDBOX_TOKEN must be printable ASCII without spaces');
  });

  it.each(['0.0.0.0', '::', '10.0.0.1', '192.168.1.5', 'example.test', '127.evil.test', '::ffff:127.0.0.1'])(
    'refuses to listen on %s without a token',
    (host) => {
      expect(problem({ HOST: host })).toMatch(/SANDBOX_TOKEN/);
      expect(problem({ HOST: host, SANDBOX_TOKEN: '' })).toMatch(/SANDBOX_TOKEN/);
      expect(readSettings({ HOST: host, SANDBOX_TOKEN: 'abc' }).host).toBe(host);
    },
  );

  it.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost'])('listens on %s without one', (host) => {
    expect(readSettings({ HOST: host }).token).toBeNull();
  });

  it('has no flag for the token, which all users of the machine could read', () => {
    const withoutFlag = Object.values(settingTable).filter(({ flag }) => flag === null);
    expect(withoutFlag.map(({ variable }) => variable)).toEqual(['SANDBOX_TOKEN']);
  });
});

function problem(env: Record<string, string>): string {
  try {
    readSettings(env);
  } catch (error) {
    if (error instanceof SettingError) return error.message;
    throw error;
  }
  throw new Error('no error');
}
