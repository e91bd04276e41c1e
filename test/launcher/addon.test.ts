import { closeSync, existsSync, readdirSync, readFileSync, readSync, writeFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { native } from '../../src/launcher/addon.js';
import type { Launch, LaunchRequest, PlaceRequest } from '../../src/launcher/native.js';
import { leftovers, newLeftovers } from '../support/leftovers.js';
import { temporaryDirectory } from '../support/temporary.js';
import { runScript, scriptedLauncher, startScript } from './scripted.js';

const closeOnExec = 0o2000000;
const nonBlocking = 0o4000;

/** The flags of a descriptor of this process, as proc(5) gives them. */
function flagsOf(fd: number): number {
  const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
  return Number.parseInt(flags ?? '0', 8);
}

/** What any child of this process inherits, the addon or not. */
function inheritable(): number[] {
  const listed = readdirSync('/proc/self/fd').map(Number);
  // The listing's own descriptor is closed by now.
  return listed.filter((fd) => existsSync(`/proc/self/fdinfo/${fd}`) && (flagsOf(fd) & closeOnExec) === 0);
}

/** Waits until there is something: the host's ends do not block. */
async function readText(fd: number): Promise<string> {
  const buffer = Buffer.alloc(1024);
  for (;;) {
    try {
      return buffer.toString('utf8', 0, readSync(fd, buffer));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      await sleep(5);
    }
  }
}

function request(changes: Partial<Record<keyof LaunchRequest, unknown>>): LaunchRequest {
  const complete = { launcher: scriptedLauncher, plan: Buffer.alloc(0), withStdin: true, onRecord() {}, onExit() {} };
  return { ...complete, ...changes } as LaunchRequest;
}

describe('what a launcher is born with', () => {
  it('is five descriptors, no environment, no signal blocked or ignored, and a session of its own', async () => {
    const inherited = inheritable();
    const another = await startScript('sleep 500');
    const { events } = await runScript('birth');
    const birth = JSON.parse(events[0] ?? '') as { descriptors: number[]; seals: number };
    expect(birth).toMatchObject({ argv0: 'ringfence-launcher', environment: 0, blocked: 0, notDefault: 0, leadsSession: true });
    expect(birth.descriptors.filter((fd) => fd <= 4 || !inherited.includes(fd))).toEqual([0, 1, 2, 3, 4]);
    await another.done;
  });

  it('is streams that block, and a sealed plan of any size', async () => {
    const plan = `birth\nplan-size\n#${'.'.repeat(3_000_000)}`;
    const { events } = await runScript(plan);
    const sealed = 1 | 2 | 4 | 8; // F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE
    const birth = JSON.parse(events[0] ?? '') as { seals: number; nonBlocking: number };
    expect(birth.nonBlocking).toBe(0);
    expect(birth.seals & sealed).toBe(sealed);
    expect(events[1]).toBe(String(plan.length));
  });
});

describe('the standard streams', () => {
  it('are pipes whose host ends do not block and are closed at exec', async () => {
    const { launch, closeStdin, done } = await startScript('stderr to-stderr\nupper\nexit 42');
    for (const fd of [launch.stdin, launch.stdout, launch.stderr]) {
      expect(flagsOf(fd) & (closeOnExec | nonBlocking)).toBe(closeOnExec | nonBlocking);
    }
    writeSync(launch.stdin, 'abc');
    expect(await readText(launch.stdout)).toBe('ABC');
    expect(await readText(launch.stderr)).toBe('to-stderr');
    closeStdin();
    expect((await done).events).toEqual(['exit 42 null']);
  });

  it('come without standard input where none is wanted: the launcher has its end of file', async () => {
    const launch = await new Promise<Launch>((resolve, reject) => {
      const started = native().launch(request({ plan: Buffer.from('upper\nexit 0'), withStdin: false, onExit: () => void started.then(resolve) }));
      started.catch(reject);
    });
    const { stdin, stdout, stderr } = launch.takeStreams();
    expect(stdin).toBeUndefined();
    expect(await readText(stdout)).toBe('');
    for (const fd of [stdout, stderr]) closeSync(fd);
    expect(launch.takeStreams()).toEqual({});
  });
});

describe('records', () => {
  it('arrive one by one, in order and before the exit, however many there are', async () => {
    const { events } = await runScript('many 500\nexit 3');
    expect(events).toEqual([...Array.from({ length: 500 }, (_, index) => String(index)), 'exit 3 null']);
  });

  it('arrive even when the launcher ends with commands unread', async () => {
    const { launch, done } = await startScript('sleep 300\nmany 5\nexit 3');
    for (let count = 0; count < 4; count += 1) expect(launch.send(Buffer.from('unread'))).toBe(true);
    expect((await done).events).toEqual(['0', '1', '2', '3', '4', 'exit 3 null']);
  });

  it('arrive when the launcher closes its socket long before it ends', async () => {
    const started = process.cpuUsage();
    const { events } = await runScript('record last\nclose-control\nsleep 1000\nexit 0');
    expect(events).toEqual(['last', 'exit 0 null']);
    // A socket at its end stays readable: a loop that went on polling it would burn the whole second.
    const { user, system } = process.cpuUsage(started);
    expect(user + system).toBeLessThan(500_000);
  });

  it('bring descriptors along, closed at exec and owned by the callee', async () => {
    const { events, descriptors } = await runScript('record none\ndescriptors 3\nexit 0');
    expect(events).toEqual(['none', 'descriptors', 'exit 0 null']);
    expect(descriptors).toHaveLength(3);
    for (const fd of descriptors) expect(flagsOf(fd) & closeOnExec).toBe(closeOnExec);
    expect(await readText(descriptors[0] ?? -1)).toBe('passed');
    for (const fd of descriptors) closeSync(fd);
  });
});

describe('ending', () => {
  it('tells a signal from an exit code', async () => {
    expect((await runScript('exit 7')).events).toEqual(['exit 7 null']);
    expect((await runScript('signal 11')).events).toEqual(['exit null 11']);
  });

  it('hangs up once, hears what the launcher still has to say, and sends no more', async () => {
    const { launch, done } = await startScript('answer\nanswer\nrecord cleaned up\nexit 0', (text) => {
      if (text !== 'first') return;
      launch.hangUp();
      launch.hangUp();
      expect(launch.send(Buffer.from('second'))).toBe(false);
    });
    expect(launch.send(Buffer.from('first'))).toBe(true);
    expect((await done).events).toEqual(['first', 'hung up', 'cleaned up', 'exit 0 null']);
  });

  it('kills, and afterwards nothing can be sent and nothing throws', async () => {
    const { launch, done } = await startScript('record up\nsleep 60000', (_text, { kill }) => {
      kill();
      kill();
    });
    expect((await done).events).toEqual(['up', 'exit null 9']);
    expect(launch.send(Buffer.from('late'))).toBe(false);
    launch.hangUp();
    launch.kill();
  });
});

describe('keepPlace', () => {
  it('writes only while this process is where it was seen', async () => {
    const procs = path.join(temporaryDirectory(), 'cgroup.procs');
    writeFileSync(procs, '');
    const place = readFileSync('/proc/self/cgroup', 'utf8');
    expect(await native().keepPlace({ procs, place: `${place}12:other:/elsewhere\n` })).toBe(false);
    expect(await native().keepPlace({ procs, place: place.slice(0, -2) })).toBe(false);
    expect(readFileSync(procs, 'utf8')).toBe('');
    expect(await native().keepPlace({ procs, place })).toBe(true);
    expect(readFileSync(procs, 'utf8')).toBe('0');
  });

  it('is false where it may not write, and refuses what is no request', async () => {
    const place = readFileSync('/proc/self/cgroup', 'utf8');
    expect(await native().keepPlace({ procs: '/nonexistent/cgroup.procs', place })).toBe(false);
    expect(() => native().keepPlace({ procs: 1, place } as unknown as PlaceRequest)).toThrow(TypeError);
  });
});

describe('failing', () => {
  it('rejects with an error of code, errno and syscall when the launcher cannot be started', async () => {
    const file = path.join(temporaryDirectory(), 'not-executable');
    writeFileSync(file, '', { mode: 0o600 });
    const before = leftovers();
    const missing = request({ launcher: '/nonexistent/launcher' });
    await expect(native().launch(missing)).rejects.toThrow(expect.objectContaining({ code: 'ENOENT', errno: -2, syscall: 'posix_spawn' }));
    await expect(native().launch(missing)).rejects.toThrow("ENOENT: no such file or directory, posix_spawn '/nonexistent/launcher'");
    await expect(native().launch(request({ launcher: file }))).rejects.toThrow(expect.objectContaining({ code: 'EACCES' }));
    expect(newLeftovers(before, leftovers())).toEqual({});
  });

  it('refuses what is no request', () => {
    const wrong = [{ launcher: 1 }, { plan: 'text' }, { plan: new Uint16Array(2) }, { withStdin: 'yes' }, { onRecord: null }, { onExit: {} }];
    for (const changes of wrong) expect(() => native().launch(request(changes))).toThrow(TypeError);
    expect(() => native().launch(undefined as unknown as LaunchRequest)).toThrow(TypeError);
  });

  it('sends nothing that is no command', async () => {
    const { launch, done } = await startScript('answer\nexit 0');
    for (const wrong of ['text', undefined, new Uint16Array(2), new Uint8Array(0), new Uint8Array(1000)]) {
      expect(launch.send(wrong as Uint8Array)).toBe(false);
    }
    launch.hangUp();
    expect((await done).events).toEqual(['hung up', 'exit 0 null']);
  });
});

it('leaves no process, zombie or descriptor behind after 200 launches, 8 at a time', async () => {
  const before = leftovers();
  const runs = async (): Promise<void> => {
    for (let count = 0; count < 25; count += 1) await runScript('record a\nexit 0');
  };
  await Promise.all(Array.from({ length: 8 }, runs));
  expect(newLeftovers(before, leftovers())).toEqual({});
});
