import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { execa } from 'execa';
import { describe, expect, it } from 'vitest';

import { patience } from '../support/lane.js';
import { leftovers } from '../support/leftovers.js';
import { needs } from '../support/skip.js';
import { cli, MAIN, shell } from './cli.js';

/** Starts the command line in a session of its own, and waits for the first output of its guest. In an object, for a child is thenable. */
async function started(flags: string[], script: string) {
  const child = execa(process.execPath, [MAIN, 'run', ...flags, '--', 'sh', '-c', script], {
    detached: true,
    reject: false,
    stdin: 'ignore',
    stripFinalNewline: false,
  });
  await once(child.stdout, 'data');
  return { child };
}

describe('live streams', () => {
  it('pass standard input through, to the last byte', async () => {
    const input = 'x'.repeat(5_000_000);
    expect((await cli(['run', '--', 'wc', '-c'], { input })).stdout.trim()).toBe('5000000');
  });

  it('give end of file with --no-stdin', async () => {
    expect((await cli(['run', '--no-stdin', '--', 'wc', '-c'], { input: 'unread' })).stdout.trim()).toBe('0');
  });

  it('a command that reads nothing does not hold up a writer that never ends', async () => {
    const { exitCode } = await shell('yes | $RINGFENCE run -- sh -c "exit 7"');
    expect(exitCode).toBe(7);
  });

  it('arrive while the command runs', async () => {
    const { child } = await started([], 'echo now; sleep 60');
    child.kill('SIGTERM');
    expect((await child).stdout).toBe('now\n');
  });

  it('keep standard output and error apart, whole', async () => {
    const { stdout, stderr } = await cli(['run', '--', 'sh', '-c', 'seq 1 200000; seq 1 1000 >&2']);
    expect(stdout.split('\n')).toHaveLength(200_001);
    expect(stdout).toMatch(/\n200000\n$/);
    expect(stderr).toMatch(/\n1000\n$/);
  });

  it('write to a file as well', async () => {
    const { stdout } = await shell('file=$(mktemp); $RINGFENCE run -- seq 1 100000 > "$file"; tail -n 1 "$file"; rm "$file"');
    expect(stdout).toBe('100000\n');
  });

  it('name a disk that is full', async () => {
    const { stderr, stdout } = await shell('$RINGFENCE run -- sh -c "echo x; sleep 60" > /dev/full; echo "code $?" >&2');
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^ringfence: cannot write the output: .*ENOSPC.*\ncode 125\n$/);
  });

  it('never hand the terminal itself to the guest', async (context) => {
    const script = (await execa('sh', ['-c', 'command -v script'], { reject: false })).stdout;
    needs(context, script === '' && 'script(1): apt install bsdutils');
    const inside = 'for fd in 0 1 2; do if test -t $fd; then echo tty; else echo pipe; fi; done';
    const { stdout } = await execa('script', ['-qec', `${process.execPath} ${MAIN} run -- sh -c '${inside}'`, '/dev/null'], { stdin: 'ignore' });
    expect(stdout.match(/tty|pipe/g)).toEqual(['pipe', 'pipe', 'pipe']);
  });
});

describe('a reader that goes away', () => {
  it('ends the run at once, quietly, and leaves nothing', async () => {
    const start = performance.now();
    const { stdout, stderr } = await shell('{ $RINGFENCE run -- yes; echo "code $?" >&2; } | head -n 1');
    expect({ stdout, stderr }).toEqual({ stdout: 'y\n', stderr: 'code 141\n' });
    expect(performance.now() - start).toBeLessThan(patience(10_000));
  });

  it('is no error for a run that has ended', async () => {
    const { stderr } = await shell('{ $RINGFENCE run -- sh -c "echo x; exit 3"; echo "code $?" >&2; } | head -n 1');
    expect(stderr).toBe('code 3\n');
  });

  it('does not break help, doctor or --json', async () => {
    for (const args of ['--help', 'run --help', 'doctor', 'run --json -- true']) {
      const { stderr } = await shell(`{ sleep 0.2; $RINGFENCE ${args}; } | true`);
      expect(stderr, args).toBe('');
    }
  });
});

describe('a reader that is slow', () => {
  it('gets everything', async () => {
    const { stdout } = await shell('$RINGFENCE run -- seq 1 300000 | { read first; sleep 1.5; wc -l; }');
    expect(stdout.trim()).toBe('299999');
  });

  it('slows the guest down instead of filling the memory of the host', async () => {
    const script = 'head -c 400M /dev/zero; echo done >&2';
    const child = execa('sh', ['-c', `${process.execPath} ${MAIN} run -- sh -c '${script}' | { sleep 4; wc -c; }`], { detached: true });
    const peak = await peakOf(child.pid ?? 0, 3500);
    const { stdout, stderr } = await child;
    expect(stdout.trim()).toBe(String(400 * 2 ** 20));
    expect(stderr).toContain('done');
    expect(peak).toBeGreaterThan(20);
    expect(peak).toBeLessThan(200);
  });
});

/** Most MiB resident in any process of a session, watched for a while. */
async function peakOf(session: number, milliseconds: number): Promise<number> {
  const end = performance.now() + milliseconds;
  let peak = 0;
  while (performance.now() < end) {
    const { stdout } = await execa('ps', ['-o', 'rss=', '--sid', String(session)], { reject: false });
    peak = Math.max(peak, ...stdout.split('\n').map((line) => Number(line) / 1024));
    await sleep(100);
  }
  return peak;
}

describe('signals to the command line', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('%s ends the guest softly, and is exit code %i', async (name, code) => {
    const { child } = await started([], 'trap "echo bye; exit 0" TERM; echo up; sleep 60 & wait');
    child.kill(name);
    const { exitCode, stdout, stderr } = await child;
    expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: 'up\nbye\n' });
    expect(stderr).toContain(`ringfence: canceled by ${name}`);
  });

  it('wait for the sandbox to be gone', async () => {
    const { child } = await started(['--grace', '300ms'], 'trap "" TERM; echo up; (setsid sleep 60 &) ; sleep 60');
    child.kill('SIGTERM');
    expect((await child).exitCode).toBe(143);
    expect(leftovers([child.pid ?? 0])).toMatchObject({ processes: [], cgroups: [] });
  });

  it('do not wait any longer at the second', async () => {
    const { child } = await started(['--grace', '50s', '--timeout', '100s'], 'trap "" TERM; echo up; while :; do sleep 1; done');
    child.kill('SIGTERM');
    await sleep(300);
    child.kill('SIGTERM');
    expect((await child).exitCode).toBe(143);
    await expect.poll(() => leftovers([child.pid ?? 0]).processes, { timeout: patience(10_000) }).toEqual([]);
    await expect.poll(() => leftovers([child.pid ?? 0]).cgroups, { timeout: patience(10_000) }).toEqual([]);
  });

  it('are obeyed although nobody reads the output', async () => {
    const child = execa('sh', ['-c', `${process.execPath} ${MAIN} run -- yes & echo $! >&2; wait $!; echo "code $?" >&2`], {
      detached: true,
      reject: false,
      buffer: { stdout: false, stderr: true },
    });
    const [pid] = (await once(child.stderr, 'data')) as [Buffer];
    await sleep(patience(2000));
    process.kill(Number(pid.toString()), 'SIGTERM');
    await expect.poll(() => existsSync(`/proc/${Number(pid.toString())}`), { timeout: patience(10_000) }).toBe(false);
    child.stdout.destroy();
    expect((await child).stderr).toContain('code 143');
  });

  it('are part of the result with --json', async () => {
    const child = execa(process.execPath, [MAIN, 'run', '--json', '--', 'sh', '-c', 'echo up; sleep 60'], { reject: false, stdin: 'ignore' });
    await sleep(patience(1500));
    child.kill('SIGINT');
    const { exitCode, stdout } = await child;
    expect(exitCode).toBe(130);
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'canceled', stdout: 'up\n' });
  });
});
