import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';

import { execa } from 'execa';
import { describe, expect, it, onTestFinished } from 'vitest';

import { runSandboxed } from '../../../src/index.js';
import type { EgressOptions, SandboxResult } from '../../../src/index.js';
import { compileFixture } from '../../support/compile.js';
import { patience, whereAmI } from '../../support/lane.js';
import { leftovers, newLeftovers } from '../../support/leftovers.js';
import { belongsHere } from '../../support/skip.js';
import { useOwnTmpdir } from '../../support/temporary.js';

useOwnTmpdir();
const program = compileFixture('escape/egress.c');
const library = fileURLToPath(new URL('../../../dist/index.js', import.meta.url));

async function greeter(): Promise<number> {
  const server = createServer((socket) => socket.on('error', () => undefined).end('served'));
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const toLoopback = (...allow: string[]): EgressOptions => ({ allow, hosts: { 'api.test': '127.0.0.1' }, allowPrivate: ['127.0.0.1/32'] });

function guest(network: EgressOptions, port: number): Promise<SandboxResult> {
  return runSandboxed({ command: program, args: ['tcp', 'api.test', String(port)], timeoutMs: patience(30_000), network, filesystem: { read: [program] } });
}

describe('allowlists', { timeout: patience(120_000) }, () => {
  it('of a hundred ports in both families are served, with two hundred listeners', async () => {
    const port = await greeter();
    const others = Array.from({ length: 99 }, (_, index) => 20_001 + index).filter((each) => each !== port);
    const ports = [port, ...others];
    const before = leftovers();
    const result = await guest(toLoopback(...ports.flatMap((each) => [`api.test:${each}`, `[2606:4700:4700::1111]:${each}`])), port);
    expect(result.stdout, result.errorMessage).toBe('ESCAPED served\n');
    // Some closing is left to a thread.
    await expect.poll(() => newLeftovers(before, leftovers())).toEqual({});
  });

  it('of many runs at one time leave nothing', async () => {
    const port = await greeter();
    const network = toLoopback(`api.test:${port}`);
    await guest(network, port);
    const before = leftovers();
    const results: SandboxResult[] = [];
    const runs = whereAmI().uml ? 3 : 25;
    await Promise.all(Array.from({ length: 4 }, async () => {
      for (let run = 0; run < runs; run++) results.push(await guest(network, port));
    }));
    expect(results.map(({ stdout }) => stdout)).toEqual(new Array(4 * runs).fill('ESCAPED served\n'));
    expect(results.flatMap(({ connections }) => connections.map(({ verdict }) => verdict))).toEqual(new Array(4 * runs).fill('allowed'));
    // Some closing is left to a thread.
    await expect.poll(() => newLeftovers(before, leftovers())).toEqual({});
  });

  it('that take more descriptors than there are end as such, and leave nothing', async () => {
    expect(existsSync(library), 'type "npm run build"').toBe(true);
    const script = `
      import { execFileSync } from 'node:child_process';
      import { readdirSync } from 'node:fs';
      import { runSandboxed } from ${JSON.stringify(library)};
      const run = (ports) => runSandboxed({ command: 'true', args: [], timeoutMs: 20000, network: { allow: Array.from({ length: ports }, (_, at) => 'api.test:' + (9000 + at)) } });
      const first = await run(1);
      // Not before: loading all this takes more.
      execFileSync('prlimit', ['--pid', String(process.pid), '--nofile=80:']);
      const before = readdirSync('/proc/self/fd').length;
      const { outcome, error } = await run(90);
      const after = readdirSync('/proc/self/fd').length;
      const last = await run(1);
      console.log(JSON.stringify({ first: first.outcome, outcome, code: error?.code, left: after - before, last: last.outcome }));`;
    const { stdout } = await execa(process.execPath, ['--input-type=module', '-e', script]);
    expect(JSON.parse(stdout)).toEqual({ first: 'exit', outcome: 'spawn-error', code: 'host-out-of-descriptors', left: 0, last: 'exit' });
  });

  it('of a host that runs out of descriptors meanwhile: what it could not take is counted', async (context) => {
    belongsHere(context, !whereAmI().uml, 'outside of User-Mode Linux, where the order of things is another');
    const port = await greeter();
    const client = [
      'import socket, time',
      "address = socket.gethostbyname('api.test')",
      'def connect():',
      '    sock = socket.socket()',
      `    sock.connect((address, ${port}))`,
      '    return sock',
      'first = connect()',
      'first.recv(10)',
      "print('served', flush=True)",
      'time.sleep(1)',
      'socks = [connect() for _ in range(60)]',
      'time.sleep(0.5)',
      "print('connected', flush=True)",
      'time.sleep(0.5)',
    ].join('\n');
    const script = `
      import { execFileSync } from 'node:child_process';
      import { closeSync, openSync, readdirSync } from 'node:fs';
      import { runSandboxed } from ${JSON.stringify(library)};
      const taken = [];
      let timer;
      // Again and again: with one descriptor free, connections are accepted and then fail, which is in the log.
      function takeAll() {
        try {
          for (;;) taken.push(openSync('/dev/null'));
        } catch (error) {
          if (error.code !== 'EMFILE') throw error;
        }
      }
      function onStdout(chunk) {
        clearInterval(timer);
        if (String(chunk).includes('connected')) {
          taken.forEach((descriptor) => closeSync(descriptor));
          return;
        }
        // Not before: launching takes more.
        execFileSync('prlimit', ['--pid', String(process.pid), '--nofile=' + (readdirSync('/proc/self/fd').length + 12) + ':']);
        takeAll();
        timer = setInterval(takeAll, 50);
      }
      const network = ${JSON.stringify(toLoopback(`api.test:${port}`))};
      const { outcome, exitCode, stderr, connections, connectionsOmitted } = await runSandboxed({ command: '/usr/bin/python3', args: ['-c', ${JSON.stringify(client)}], timeoutMs: ${patience(30_000)}, network, onStdout });
      console.log(JSON.stringify({ outcome, exitCode, stderr, listed: connections.length, omitted: connectionsOmitted }));`;
    const { stdout } = await execa(process.execPath, ['--input-type=module', '-e', script]);
    const { listed, omitted, ...how } = JSON.parse(stdout) as { listed: number; omitted: number };
    expect(how).toEqual({ outcome: 'exit', exitCode: 0, stderr: '' });
    expect(omitted).toBeGreaterThan(50);
    expect(listed + omitted).toBe(61);
  });
});
