/** A host whose threads of libuv's pool are all held up, by disks that do not answer. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { execa } from 'execa';
import { expect, it } from 'vitest';

import { patience } from '../support/lane.js';
import { temporaryDirectory } from '../support/temporary.js';

const library = fileURLToPath(new URL('../../dist/index.js', import.meta.url));

async function inBusyHost(runs: string): Promise<Record<string, unknown>> {
  const fifo = path.join(temporaryDirectory(), 'fifo');
  execFileSync('mkfifo', [fifo]);
  const code = `
    import { open } from 'node:fs';
    import { createExecutor, runSandboxed } from ${JSON.stringify(library)};
    await runSandboxed({ command: '/bin/true', args: [], timeoutMs: 20_000 }); // what is learnt once is learnt
    for (let count = 0; count < 4; count++) open(${JSON.stringify(fifo)}, () => {});
    const timed = async (work) => { const start = performance.now(); return { ...(await work), took: performance.now() - start }; };
    console.log(JSON.stringify(await (${runs})()));
    process.kill(process.pid, 'SIGKILL');`;
  const { stdout, stderr } = await execa(process.execPath, ['--input-type=module', '-e', code], { reject: false });
  expect(stdout, stderr).not.toBe('');
  return JSON.parse(stdout) as Record<string, unknown>;
}

it('starts a command of the system all the same, in its time', { timeout: patience(30_000) }, async () => {
  const answer = await inBusyHost(`async () => timed(runSandboxed({ command: '/bin/echo', args: ['here'], timeoutMs: 20_000 }))`);
  expect(answer).toMatchObject({ outcome: 'exit', stdout: 'here\n' });
});

it('gives a run up that cannot be planned, at its deadline or when it is aborted', { timeout: patience(30_000) }, async () => {
  const granted = `filesystem: { read: ['/usr/share'] }`;
  const timeout = await inBusyHost(`async () => timed(runSandboxed({ command: '/bin/echo', args: [], timeoutMs: 300, gracePeriodMs: 10, ${granted} }))`);
  expect(timeout).toMatchObject({ outcome: 'timeout', stdout: '' });
  const signal = 'signal: AbortSignal.timeout(300)';
  const canceled = await inBusyHost(`async () => timed(runSandboxed({ command: '/bin/echo', args: [], timeoutMs: 60_000, ${granted}, ${signal} }))`);
  expect(canceled).toMatchObject({ outcome: 'canceled' });
  expect(Number(canceled['took'])).toBeLessThan(30_000);
});

it('answers a function at its deadline', { timeout: patience(30_000) }, async () => {
  const answer = await inBusyHost(`async () => timed(createExecutor({ runtime: 'node' }).run({ source: 'export default () => 1', capabilities: { timeoutMs: 300 } }))`);
  expect(answer).toMatchObject({ ok: false, timedOut: true });
});
