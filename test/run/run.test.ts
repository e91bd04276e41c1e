import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';

import { afterAll, describe, expect, it, vi } from 'vitest';

import { runSandboxed } from '../../src/index.js';
import type { SandboxOptions, SandboxResult } from '../../src/index.js';
import { patience } from '../support/lane.js';
import { leftovers, newLeftovers } from '../support/leftovers.js';

const scratch = mkdtempSync(join(tmpdir(), 'run-test-'));
chmodSync(scratch, 0o755);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function run(command: string, args: string[], extra: Partial<SandboxOptions> = {}): Promise<SandboxResult> {
  return runSandboxed({ command, args, timeoutMs: 20_000, ...extra });
}
const sh = (script: string, extra: Partial<SandboxOptions> = {}) => run('/bin/sh', ['-c', script], extra);
const node = (script: string, extra: Partial<SandboxOptions> = {}) => run(process.execPath, ['-e', script], extra);

/** Fails with the reason in sight. */
function expectOutcome(result: SandboxResult, outcome: SandboxResult['outcome']): void {
  expect(result, `${result.errorMessage}\n${result.stderr}`).toMatchObject({ outcome });
}

describe('how a guest ends', () => {
  it.each([0, 1, 42, 255])('exit code %i is the result\'s', async (code) => {
    const result = await sh(`exit ${code}`);
    expectOutcome(result, 'exit');
    expect(result).toMatchObject({ exitCode: code, signal: null, errorMessage: '', error: null });
  });

  it('a signal of its own is an exit with that signal', async () => {
    const result = await sh('kill -SEGV $$');
    expectOutcome(result, 'exit');
    expect(result).toMatchObject({ exitCode: null, signal: 'SIGSEGV' });
  });

  it('gives standard output and error apart, as UTF-8', async () => {
    const result = await sh('echo grüße; echo fehler >&2');
    expect(result).toMatchObject({ stdout: 'grüße\n', stderr: 'fehler\n', stdoutTruncated: false, stderrTruncated: false });
  });

  it('passes arguments verbatim', async () => {
    const args = ['', ' a b ', '$HOME', '*', '"', '\n', 'ü'];
    const result = await run('/usr/bin/printf', ['[%s]', ...args]);
    expect(result.stdout).toBe(args.map((each) => `[${each}]`).join(''));
  });

  it('has always the same shape', async () => {
    const results = await Promise.all([
      sh('exit 0'),
      run('/does/not/exist', []),
      run('/bin/true', [], { signal: AbortSignal.abort() }),
      sh('sleep 60', { timeoutMs: 100, gracePeriodMs: 0 }),
    ]);
    for (const result of results) {
      expect(Object.keys(result).sort()).toEqual(Object.keys(results[0] as object).sort());
      expect(Object.keys(result.enforcement).sort()).toEqual(['cpu', 'filesystem', 'identity', 'landlock', 'memory', 'network', 'pids', 'privileges', 'syscalls']);
      expect(result.errorMessage !== '').toBe(result.outcome === 'spawn-error');
      expect(result.error !== null).toBe(result.outcome === 'spawn-error');
    }
  });
});

describe('a command that cannot be started', () => {
  it.each(['/does/not/exist', 'no-such-command-anywhere'])('%s is a spawn-error with ENOENT', async (command) => {
    const result = await run(command, [], { env: { PATH: '/usr/bin:/bin' } });
    expectOutcome(result, 'spawn-error');
    expect(result.errorMessage).toContain('ENOENT');
    expect(result.error).toMatchObject({ code: 'command-not-found', errno: 'ENOENT' });
    expect(result).toMatchObject({ exitCode: null, signal: null });
  });

  it('a file that is not executable is a spawn-error with EACCES', async () => {
    const file = join(scratch, 'plain');
    writeFileSync(file, 'hello', { mode: 0o644 });
    const result = await run(file, []);
    expectOutcome(result, 'spawn-error');
    expect(result.errorMessage).toContain('EACCES');
    expect(result.error).toMatchObject({ code: 'command-not-executable' });
  });

  it('a file that is no program is a spawn-error with ENOEXEC', async () => {
    const file = join(scratch, 'noise');
    writeFileSync(file, 'hello', { mode: 0o755 });
    const result = await run(file, []);
    expectOutcome(result, 'spawn-error');
    expect(result.error).toMatchObject({ code: 'command-not-executable', errno: 'ENOEXEC', stage: 'exec' });
  });

  it('a script whose interpreter does not exist says that it is the interpreter', async () => {
    const file = join(scratch, 'orphan');
    writeFileSync(file, '#!/no/such/interpreter\n', { mode: 0o755 });
    const result = await run(file, []);
    expectOutcome(result, 'spawn-error');
    expect(result.error?.code).toBe('interpreter-not-found');
  });

  it('arguments beyond the kernel\'s limit are a spawn-error that says so', async () => {
    const result = await run('/bin/true', ['x'.repeat(200_000)]);
    expectOutcome(result, 'spawn-error');
    expect(result.error).toMatchObject({ code: 'arguments-too-long', errno: 'E2BIG' });
  });
});

describe('wrong options', () => {
  it('reject by name, whether the text or the file system proves them wrong', async () => {
    await expect(run('', [])).rejects.toThrow('command must be a non-empty string');
    await expect(run('/bin/true', [], { cwd: 'relative' })).rejects.toThrow('cwd must be an absolute path');
    await expect(run('/bin/true', [], { timeoutMs: NaN })).rejects.toThrow('timeoutMs must be a positive finite integer');
    await expect(run('/bin/true', [], { timeoutMs: 100, gracePeriodMs: 100 })).rejects.toThrow('gracePeriodMs (100) must be < timeoutMs (100)');
    await expect(run('/bin/true', [], { filesystem: { read: ['/does/not/exist'] } })).rejects.toThrow(/filesystem\.read\[0\]/);
    await expect(run('/bin/true', [], { cwd: '/does/not/exist' })).rejects.toThrow(/^cwd /);
  });
});

describe('standard input', () => {
  it('is at its end at once when there is none', async () => {
    const result = await sh('cat; echo end');
    expectOutcome(result, 'exit');
    expect(result.stdout).toBe('end\n');
  });

  it.each([
    ['text', () => 'grüße'],
    ['bytes', () => Buffer.from('grüße')],
    ['a stream', () => Readable.from(['grü', 'ße'])],
  ])('comes from %s', async (_, stdin) => {
    const result = await node('process.stdin.setEncoding("utf8").on("data", (t) => process.stdout.write(t.toUpperCase()))', { stdin: stdin() });
    expectOutcome(result, 'exit');
    expect(result.stdout).toBe('GRÜSSE');
  });

  it('of 8 MiB arrives whole', async () => {
    const result = await sh('wc -c', { stdin: new Uint8Array(8 << 20) });
    expect(result.stdout.trim()).toBe(String(8 << 20));
  });

  it.each([
    ['bytes', () => new Uint8Array(64 << 20)],
    ['text', () => 'x'.repeat(64 << 20)],
    ['an endless stream', () => new Readable({ read() { this.push(Buffer.alloc(65_536)); } })],
    ['a stream that never says anything', () => new Readable({ read: () => undefined })],
  ])('that is never read, as %s, does not hold up the guest\'s exit code', async (_, stdin) => {
    const source = stdin();
    const result = await sh('exit 7', { stdin: source, timeoutMs: 10_000 });
    expectOutcome(result, 'exit');
    expect(result.exitCode).toBe(7);
    if (source instanceof Readable) expect(source.destroyed).toBe(true);
  });

  it('ends where its stream fails', async () => {
    const failing = Readable.from((function* () {
      yield 'before';
      throw new Error('disk');
    })());
    const result = await sh('cat', { stdin: failing });
    expectOutcome(result, 'exit');
    expect(result.stdout).toBe('before');
  });

  it('whose stream fails before anything runs harms nobody', async () => {
    const failing = new Readable({ read: () => undefined });
    const running = sh('cat', { stdin: failing });
    failing.destroy(new Error('at once'));
    expectOutcome(await running, 'exit');
  });
});

describe('the deadline', () => {
  it('of 400 ms with 100 ms of grace is kept, and what was written before is kept too', async () => {
    const startedAt = performance.now();
    const result = await sh('echo before; sleep 60', { timeoutMs: patience(400), gracePeriodMs: patience(100) });
    expectOutcome(result, 'timeout');
    expect(performance.now() - startedAt).toBeLessThan(patience(2000));
    expect(result).toMatchObject({ stdout: 'before\n', exitCode: null, signal: null });
    expect(result.durationMs).toBeGreaterThanOrEqual(399);
  });

  it('lets a guest that hears SIGTERM finish, and is a timeout all the same', async () => {
    const result = await sh('trap "echo bye; exit 0" TERM; while :; do sleep 0.05; done', { timeoutMs: patience(500), gracePeriodMs: patience(400) });
    expectOutcome(result, 'timeout');
    expect(result.stdout).toBe('bye\n');
  });

  it('kills a guest that ignores SIGTERM', async () => {
    const result = await sh('trap "" TERM; while :; do sleep 0.05; done', { timeoutMs: patience(400), gracePeriodMs: patience(100) });
    expectOutcome(result, 'timeout');
    expect(result.durationMs).toBeLessThan(patience(2000));
  });

  it('kills a guest that has stopped itself', async () => {
    const result = await sh('kill -STOP $$', { timeoutMs: patience(300), gracePeriodMs: patience(100) });
    expectOutcome(result, 'timeout');
    expect(result.durationMs).toBeLessThan(patience(2000));
  });

  it('sends the signal that was asked for', async () => {
    const result = await sh('trap "echo usr1; exit 0" USR1; while :; do sleep 0.05; done', { timeoutMs: patience(500), gracePeriodMs: patience(400), shutdownSignal: 'SIGUSR1' });
    expect(result.stdout).toBe('usr1\n');
  });

  it('is not put off by output', async () => {
    const result = await sh('while :; do echo x; sleep 0.02; done', { timeoutMs: patience(400), gracePeriodMs: 0 });
    expectOutcome(result, 'timeout');
  });

  it('of a millisecond is a timeout and no error', async () => {
    const result = await sh('sleep 60', { timeoutMs: 1 });
    expectOutcome(result, 'timeout');
    expect(result.durationMs).toBeLessThan(patience(1500));
  });

  it('that passes while the host is busy does not take a finished guest for a late one', async () => {
    const running = sh('exit 3', { timeoutMs: patience(600), gracePeriodMs: 0 });
    await new Promise((resolve) => setTimeout(resolve, patience(50)));
    const until = performance.now() + patience(900);
    while (performance.now() < until);
    const result = await running;
    expectOutcome(result, 'exit');
    expect(result.exitCode).toBe(3);
  });
});

describe('what a guest leaves running', () => {
  it.each([
    ['a child that holds the output open', 'sleep 30 & echo done'],
    ['a daemon in a session of its own', 'setsid sh -c "sleep 30" & echo done'],
    ['a double fork with closed streams', '(setsid sleep 30 <&- >&- 2>&- &) ; echo done'],
    ['a child that ignores signals', '(trap "" TERM HUP INT; sleep 30) & echo done'],
  ])('%s neither survives nor delays the result', async (_, script) => {
    const result = await sh(script, { timeoutMs: 15_000 });
    expectOutcome(result, 'exit');
    expect(result.stdout).toBe('done\n');
    expect(result.durationMs).toBeLessThan(5000);
  });
});

describe('an AbortSignal', () => {
  it('aborted beforehand is canceled, without a process, and the owned directory is named', async () => {
    const result = await run('/bin/true', [], { signal: AbortSignal.abort() });
    expectOutcome(result, 'canceled');
    expect(result).toMatchObject({ durationMs: 0, cwdOwnedBySandbox: true });
    expect(result.cwd.startsWith(join(tmpdir(), 'ringfence-'))).toBe(true);
    expect(existsSync(result.cwd)).toBe(false);
  });

  it('aborted at once, while the run is planned, is canceled', async () => {
    const controller = new AbortController();
    const running = sh('sleep 60', { signal: controller.signal });
    controller.abort();
    const result = await running;
    expectOutcome(result, 'canceled');
    expect(existsSync(result.cwd)).toBe(false);
  });

  it('aborted during the run ends it softly at first', async () => {
    const controller = new AbortController();
    const running = sh('trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.05; done', {
      signal: controller.signal,
      onStdout: () => controller.abort(),
    });
    const result = await running;
    expectOutcome(result, 'canceled');
    expect(result.stdout).toBe('up\nbye\n');
    expect(result).toMatchObject({ exitCode: null, signal: null });
  });

  it('aborted after the guest has ended is an exit, though the event loop has not heard of it yet', async () => {
    const controller = new AbortController();
    const onStdout = (): void => {
      for (const start = performance.now(); performance.now() - start < patience(500); );
      controller.abort();
    };
    const result = await run('/bin/sh', ['-c', 'echo up; sleep 0.05; exit 3'], { signal: controller.signal, onStdout });
    expect(result).toMatchObject({ outcome: 'exit', exitCode: 3 });
  });

  it('aborted during the run kills what does not listen after the grace period', async () => {
    const controller = new AbortController();
    const result = await sh('trap "" TERM; echo up; while :; do sleep 0.05; done', {
      signal: controller.signal,
      gracePeriodMs: 100,
      onStdout: () => controller.abort(),
    });
    expectOutcome(result, 'canceled');
    expect(result.durationMs).toBeLessThan(5000);
  });

  it('shared by many runs raises no warning and ends them all', async () => {
    const warned = vi.fn();
    process.on('warning', warned);
    const controller = new AbortController();
    const running = Array.from({ length: 15 }, () => sh('sleep 60', { signal: controller.signal, gracePeriodMs: 0 }));
    setTimeout(() => controller.abort(), 300);
    for (const result of await Promise.all(running)) expectOutcome(result, 'canceled');
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', warned);
    expect(warned).not.toHaveBeenCalled();
  });
});

describe('the working directory', () => {
  it('is the sandbox\'s own under os.tmpdir(), writable, and gone afterwards', async () => {
    const result = await node('require("fs").writeFileSync("f", "x"); process.stdout.write(process.cwd())');
    expectOutcome(result, 'exit');
    expect(result.stdout).toBe(result.cwd);
    expect(result.cwdOwnedBySandbox).toBe(true);
    expect(result.cwd.startsWith(`${tmpdir()}/`)).toBe(true);
    expect(existsSync(result.cwd)).toBe(false);
  });

  it('of the caller with mode 0700 is written to, and the files stay and belong to its owner', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'callers-'));
    try {
      const result = await sh('pwd; echo kept > file; mkdir sub', { cwd });
      expectOutcome(result, 'exit');
      expect(result).toMatchObject({ stdout: `${cwd}\n`, cwd, cwdOwnedBySandbox: false });
      expect(readFileSync(join(cwd, 'file'), 'utf8')).toBe('kept\n');
      const owner = statSync(cwd).uid;
      expect(statSync(join(cwd, 'file')).uid).toBe(owner);
      expect(statSync(join(cwd, 'sub')).uid).toBe(owner);
    } finally {
      rmSync(cwd, { recursive: true });
    }
  });

  it('of the caller stays untouched when it is read-only', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'callers-'));
    try {
      chmodSync(cwd, 0o755);
      const result = await sh('echo no > file || exit 5', { cwd, cwdReadOnly: true });
      expect(result.exitCode).toBe(5);
      expect(existsSync(join(cwd, 'file'))).toBe(false);
    } finally {
      rmSync(cwd, { recursive: true });
    }
  });
});

describe('the environment', () => {
  it('has PATH and HOME of the parent and nothing else of it', async () => {
    process.env['RUN_TEST_SECRET'] = 'hunter2';
    const result = await run('/usr/bin/env', []);
    delete process.env['RUN_TEST_SECRET'];
    expectOutcome(result, 'exit');
    expect(result.stdout).not.toContain('hunter2');
    const names = result.stdout.trim().split('\n').map((line) => line.split('=')[0]);
    expect(names).toEqual(expect.arrayContaining(['PATH', 'HOME']));
    for (const name of names) expect(['PATH', 'HOME', 'TMPDIR']).toContain(name);
  });

  it('takes the caller\'s over the inherited ones', async () => {
    const result = await run('/usr/bin/env', [], { env: { PATH: '/bin', HOME: '/h', MINE: 'a=b' } });
    expect(result.stdout.split('\n')).toEqual(expect.arrayContaining(['PATH=/bin', 'HOME=/h', 'MINE=a=b']));
  });

  it('gets the heap limit of Node appended to NODE_OPTIONS, for Node only', async () => {
    const script = 'process.stdout.write(process.env.NODE_OPTIONS + " " + require("v8").getHeapStatistics().heap_size_limit)';
    const result = await node(script, { nodeHeapMb: 64, env: { NODE_OPTIONS: '--no-warnings' } });
    expectOutcome(result, 'exit');
    expect(result.stdout).toMatch(/^--no-warnings --max-old-space-size=64 /);
    expect(Number(result.stdout.split(' ')[2])).toBeLessThan(200 << 20);
    expect(result.nodeHeapMbApplied).toBe(64);
    expect(await sh('echo "[$NODE_OPTIONS]"', { nodeHeapMb: 64 })).toMatchObject({ stdout: '[]\n', nodeHeapMbApplied: null });
  });
});

describe('the output caps', () => {
  it('of 100 and 50 bytes cut exactly, and say which was first', async () => {
    const out = await sh('head -c 1000 /dev/zero | tr "\\0" a; sleep 60', { maxStdoutBytes: 100 });
    expectOutcome(out, 'overflow-stdout');
    expect(out).toMatchObject({ stdout: 'a'.repeat(100), stdoutTruncated: true, stderrTruncated: false, exitCode: null });
    const error = await sh('head -c 1000 /dev/zero | tr "\\0" b >&2; sleep 60', { maxStderrBytes: 50 });
    expectOutcome(error, 'overflow-stderr');
    expect(error).toMatchObject({ stderr: 'b'.repeat(50), stderrTruncated: true, stdoutTruncated: false });
  });

  it('count even when the guest has ended before its output is read', async () => {
    for (let round = 0; round < 10; round++) {
      expectOutcome(await sh('printf %0101d 0', { maxStdoutBytes: 100 }), 'overflow-stdout');
      expectOutcome(await sh('printf %0100d 0', { maxStdoutBytes: 100 }), 'exit');
    }
  });

  it('end an endless flood at once', async () => {
    const result = await sh('yes', { maxStdoutBytes: 1 << 20 });
    expectOutcome(result, 'overflow-stdout');
    expect(result.stdout.length).toBe(1 << 20);
    expect(result.durationMs).toBeLessThan(10_000);
  });

  it('hold for the callbacks too', async () => {
    const chunks: Buffer[] = [];
    const result = await sh('yes', { maxStdoutBytes: 1000, onStdout: (chunk) => chunks.push(chunk) });
    expect(Buffer.concat(chunks).toString()).toBe(result.stdout);
  });
});

describe('the callbacks', () => {
  it('see the output while the guest runs', async () => {
    const seen: string[] = [];
    const controller = new AbortController();
    const see = (text: string) => {
      if (seen.push(text) === 2) controller.abort();
    };
    const result = await sh('echo one; echo two >&2; read line; echo three', {
      stdin: new Readable({ read: () => undefined }),
      onStdout: (chunk) => see(`out ${chunk}`),
      onStderr: (chunk) => see(`err ${chunk}`),
      signal: controller.signal,
      gracePeriodMs: 0,
    });
    expectOutcome(result, 'canceled');
    expect(seen.sort()).toEqual(['err two\n', 'out one\n']);
  });

  it('that throw end the run and reject with what they threw', async () => {
    const mine = new Error('mine');
    const startedAt = performance.now();
    const running = sh('echo x; sleep 60', {
      onStdout: () => {
        throw mine;
      },
    });
    await expect(running).rejects.toBe(mine);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});

describe('what the kernel holds it to', () => {
  it('ends 512 MB of Buffers under 128 MB as out of memory', async () => {
    const script = 'const all = []; for (let i = 0; i < 512; i++) all.push(Buffer.alloc(1 << 20, 1)); console.log("survived")';
    const result = await node(script, { limits: { memoryMb: 128 } });
    expectOutcome(result, 'out-of-memory');
    expect(result.stdout).toBe('');
    expect(result.usage.oomKills).toBeGreaterThan(0);
  });

  it('ends a child of the guest that takes too much as out of memory as well', async () => {
    const script = 'const all = []; for (let i = 0; i < 512; i++) all.push(Buffer.alloc(1 << 20, 1))';
    const result = await sh(`"$0" -e '${script}'; sleep 1; echo survived`, { limits: { memoryMb: 128 }, env: { NODE: process.execPath } });
    expect(['exit', 'out-of-memory']).toContain(result.outcome);
    const child = await run('/bin/sh', ['-c', `"$0" -e '${script}'; sleep 1; echo survived`, process.execPath], { limits: { memoryMb: 128 } });
    expectOutcome(child, 'out-of-memory');
    expect(child.stdout).toBe('');
  });

  it('holds a fork bomb to its limit, ends it in time and counts the refusals', async () => {
    const result = await run('/bin/sh', ['-c', 'bomb() { bomb | bomb & }; bomb; while :; do :; done'], { limits: { pids: 64 }, timeoutMs: patience(1500), gracePeriodMs: 100, maxStderrBytes: 64 << 20 });
    expect(['timeout', 'exit']).toContain(result.outcome);
    expect(result.durationMs).toBeLessThan(patience(8000));
    expect(result.usage.pidsRefused).toBeGreaterThan(0);
    if (result.usage.peakPids !== null) expect(result.usage.peakPids).toBeLessThanOrEqual(64);
  });

  it('ends a run that has used up its cpu time', async () => {
    const result = await sh('while :; do :; done', { limits: { cpuTimeMs: 300 } });
    expectOutcome(result, 'cpu-limit');
    expect((result.usage.cpuUserMs ?? 0) + (result.usage.cpuSystemMs ?? 0)).toBeGreaterThanOrEqual(250);
  });

  it('reports what was in force, and no more', async () => {
    const { enforcement } = await sh('exit 0');
    for (const fence of ['privileges', 'identity', 'filesystem', 'network', 'pids', 'memory'] as const) {
      expect(enforcement[fence], fence).toMatchObject({ status: 'enforced' });
    }
    expect(enforcement.cpu).toEqual({ status: 'disabled', by: 'no limit asked for' });
    expect(enforcement.memory.by).toMatch(/^cgroup-v[12]$/);
    const open = await sh('exit 0', { network: 'host' });
    expect(open.enforcement.network).toEqual({ status: 'disabled', by: "network: 'host'" });
  });

  it('reports what was used', async () => {
    const { usage, durationMs } = await node('const a = Buffer.alloc(50 << 20, 1); for (let i = 0; i < 1e7; i++);');
    expect(usage.wallMs).toBeGreaterThan(0);
    expect(Math.abs(usage.wallMs - durationMs)).toBeLessThanOrEqual(1);
    expect(usage.cpuUserMs).toBeGreaterThan(0);
    expect(usage.peakMemoryBytes).toBeGreaterThan(50 << 20);
    expect(usage).toMatchObject({ oomKills: 0, pidsRefused: 0 });
  });
});

it('leaves nothing behind of many runs at a time', async () => {
  await sh('exit 0');
  const before = leftovers();
  const kinds = [
    () => sh('exit 0'),
    () => sh('cat', { stdin: 'x' }),
    () => sh('exit 7', { stdin: new Uint8Array(1 << 20) }),
    () => run('/does/not/exist', []),
    () => sh('yes', { maxStdoutBytes: 10 }),
    () => sh('sleep 60', { timeoutMs: 50, gracePeriodMs: 0 }),
    () => sh('setsid sleep 60 & sleep 60', { signal: AbortSignal.timeout(60), gracePeriodMs: 0 }),
  ];
  await Promise.all(Array.from({ length: 70 }, (_, index) => kinds[index % kinds.length]?.()));
  const { descriptors = [], ...others } = newLeftovers(before, leftovers());
  expect(others).toEqual({});
  // On cgroup v1 the host itself goes on to take the kernel's lock for a while, with a file that is open for a moment.
  expect(descriptors.filter((each) => !each.endsWith('cgroup.procs') && !each.endsWith('/cgroup'))).toEqual([]);
});

describe('a promise of onStdout that never settles', () => {
  const never = () => new Promise<void>(() => undefined);

  it('does not hold up a run that timed out', async () => {
    const result = await runSandboxed({ command: 'sh', args: ['-c', 'yes'], timeoutMs: patience(500), gracePeriodMs: 50, onStdout: never });
    expect(result.outcome).toBe('timeout');
  });

  it('does not hold up a guest that ended by itself for longer than the deadline', async () => {
    const timeoutMs = patience(1000);
    const result = await runSandboxed({ command: 'echo', args: ['one'], timeoutMs, onStdout: never });
    expect(result).toMatchObject({ outcome: 'exit', stdout: 'one\n' });
  });

  it('does not hold up an abort, not even one after the end of the guest', async () => {
    const controller = new AbortController();
    const run = runSandboxed({ command: 'sh', args: ['-c', 'echo one; sleep 0.2; echo two'], timeoutMs: patience(20_000), onStdout: never, signal: controller.signal });
    setTimeout(() => controller.abort(), patience(1000));
    expect((await run).outcome).toBe('canceled');
  });
});

it('a promise of onStdout or onStderr that is rejected after the guest has ended rejects the run', async () => {
  for (const script of ['echo one', 'echo one >&2', 'echo one; seq 100000']) {
    const late = () => new Promise<void>((_, reject) => setTimeout(() => reject(new Error('late')), 300));
    const run = runSandboxed({ command: 'sh', args: ['-c', script], timeoutMs: patience(20_000), onStdout: late, onStderr: late });
    await expect(run, script).rejects.toThrow('late');
  }
});

it('the result waits for the last promise of onStdout', async () => {
  let settled = false;
  const slow = () => new Promise<void>((resolve) => setTimeout(() => resolve(void (settled = true)), 300));
  const { outcome } = await runSandboxed({ command: 'echo', args: ['one'], timeoutMs: patience(20_000), onStdout: slow });
  expect({ outcome, settled }).toEqual({ outcome: 'exit', settled: true });
});
