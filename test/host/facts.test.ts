import { readFileSync, readlinkSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { once } from 'node:events';
import { release } from 'node:os';

import { describe, expect, it } from 'vitest';

import { readHostFacts } from '../../src/host/facts.js';

describe('readHostFacts', () => {
  it('tells this process and its account from any other', async () => {
    const facts = await readHostFacts();
    expect(facts).toMatchObject({
      pid: process.pid,
      uid: process.geteuid?.(),
      gid: process.getegid?.(),
      kernelRelease: release(),
    });
    expect(`pid:[${facts.pidNamespace}]`).toBe(readlinkSync('/proc/self/ns/pid'));
    expect(readFileSync('/proc/self/stat', 'utf8')).toContain(` ${facts.startTime} `);
    expect(facts.uidMap.length).toBeGreaterThan(0);
  });

  it('knows the view and the homes', async () => {
    const { base, homes } = await readHostFacts();
    expect(base.binds).toContain('/usr');
    const home = process.env['HOME'] ?? '/';
    if (home !== '/') expect(homes).toContain(home);
    expect(homes).not.toContain('/');
  });

  it('answers for cgroups either way, with a remedy where there is none', async () => {
    const { cgroup } = await readHostFacts();
    if (cgroup.kind === 'ready') expect(cgroup.controllers).toEqual(expect.arrayContaining(['memory', 'pids']));
    else expect(cgroup.hint).not.toBe('');
  });

  it('keeps nothing: another environment gets another answer', async () => {
    const before = process.env['RINGFENCE_CGROUP'];
    process.env['RINGFENCE_CGROUP'] = '/ringfence-test-nowhere';
    try {
      expect((await readHostFacts()).cgroup).toMatchObject({ code: 'CGROUP_OVERRIDE_INVALID' });
    } finally {
      if (before === undefined) delete process.env['RINGFENCE_CGROUP'];
      else process.env['RINGFENCE_CGROUP'] = before;
    }
  });

  it('is about the process, whichever thread asks', async () => {
    const worker = new Worker("require('node:worker_threads').parentPort.postMessage(require('node:fs').readFileSync('/proc/self/stat', 'utf8'))", { eval: true });
    const [stat] = (await once(worker, 'message')) as [string];
    expect(stat).toContain(` ${(await readHostFacts()).startTime} `);
  });
});
