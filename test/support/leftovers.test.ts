import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { cgroupDirectories, leftovers, newLeftovers } from './leftovers.js';
import { needs } from './skip.js';
import { useOwnTmpdir } from './temporary.js';

useOwnTmpdir();

it('is empty where nothing was left', () => {
  expect(newLeftovers(leftovers(), leftovers())).toEqual({});
});

it('sees a child, a directory and a descriptor, and their end', async () => {
  const before = leftovers();
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const directory = mkdtempSync(path.join(tmpdir(), 'ringfence-'));
  const fd = openSync('/dev/zero', 'r');
  const during = newLeftovers(before, leftovers());
  child.kill('SIGKILL');
  await once(child, 'exit');
  rmdirSync(directory);
  closeSync(fd);
  expect(during.processes).toEqual([expect.stringMatching(new RegExp(`^${child.pid} sleep `))]);
  expect(during.temporary).toEqual([directory]);
  expect(during.descriptors).toContain(`${fd} /dev/zero`);
  expect(newLeftovers(before, leftovers())).toEqual({});
});

it('sees the orphans of a host that was killed, and who is a zombie', async () => {
  const script = 'sleep 60 & echo $!; exec sleep 61';
  const host = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  const [line] = (await once(host.stdout, 'data')) as [Buffer];
  const orphan = Number(line.toString());
  host.kill('SIGKILL');
  await once(host, 'exit');
  const left = leftovers([host.pid ?? 0]).processes;
  process.kill(orphan, 'SIGKILL');
  expect(left).toEqual([expect.stringMatching(new RegExp(`^${orphan} (sh|sleep) [RS]`))]);

  const parent = spawn('sh', ['-c', 'sleep 0 & exec sleep 60'], { stdio: 'ignore' });
  for (let tries = 0; tries < 100 && !leftovers().processes.some((each) => / Z /.test(each)); tries += 1) await sleep(50);
  expect(leftovers().processes).toContainEqual(expect.stringMatching(new RegExp(` Z \\(parent ${parent.pid}\\)`)));
  parent.kill('SIGKILL');
  await once(parent, 'exit');
});

it('sees a cgroup of a run, and a process in it', async (context) => {
  const writable = cgroupDirectories().find((directory) => {
    try {
      mkdirSync(path.join(directory, `ringfence-1-${process.pid}-1-0`));
      return true;
    } catch {
      return false; // whatever the reason: the next one may do
    }
  });
  needs(context, writable === undefined && 'a cgroup that this user may make children in (Delegate=yes)');
  const directory = path.join(writable ?? '', `ringfence-1-${process.pid}-1-0`);
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  try {
    writeFileSync(path.join(directory, 'cgroup.procs'), String(child.pid));
    expect(leftovers().cgroups).toEqual([directory]);
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
    await sleep(50);
    rmdirSync(directory);
  }
  expect(leftovers().cgroups).toEqual([]);
});
