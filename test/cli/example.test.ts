import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';

import { expect, it, onTestFinished } from 'vitest';

import { cli } from './cli.js';

const directory = fileURLToPath(new URL('../../scripts/example', import.meta.url));

it('the script that npm start shows is refused everything that it tries, and says so', async () => {
  const service = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  await once(service, 'listening');
  onTestFinished(() => void service.close());
  const { port } = service.address() as AddressInfo;
  const args = ['run', '--pids', '32', '--', process.execPath, 'untrusted.mjs', String(port), '/root'];
  const { exitCode, stdout, stderr } = await cli(args, { cwd: directory, env: { API_TOKEN: 'a secret' } });
  expect({ exitCode, stderr }, stdout).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout.match(/^ {2}refused {2}/gm)).toHaveLength(8);
  expect(stdout).not.toContain('WORKED');
});
