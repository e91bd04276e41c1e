import { describe, expect, it } from 'vitest';

import { Admission } from '../../src/service/admission.js';

const staying = () => new AbortController().signal;
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('admission', () => {
  it('lets so many in, keeps so many waiting, and turns the rest away', async () => {
    const admission = new Admission({ concurrency: 2, queueLength: 2 });
    const leave = await admission.enter(staying());
    await admission.enter(staying());
    const third = admission.enter(staying());
    void admission.enter(staying());
    await expect(admission.enter(staying())).rejects.toMatchObject({ reason: 'full' });
    expect(admission).toMatchObject({ running: 2, waiting: 2 });
    leave();
    await third;
    expect(admission).toMatchObject({ running: 2, waiting: 1 });
  });

  it('is first come, first served', async () => {
    const admission = new Admission({ concurrency: 1, queueLength: 10 });
    const order: number[] = [];
    const runs = [0, 1, 2, 3, 4].map(async (number) => {
      const leave = await admission.enter(staying());
      order.push(number);
      await turn();
      leave();
    });
    await Promise.all(runs);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it('never has more running than it may, whenever they come and go', async () => {
    const admission = new Admission({ concurrency: 3, queueLength: 1000 });
    let inside = 0;
    let most = 0;
    const runs = Array.from({ length: 300 }, async (_, number) => {
      if (number % 7 === 0) await turn();
      const leave = await admission.enter(staying());
      most = Math.max(most, ++inside);
      if (number % 3 === 0) await turn();
      inside--;
      leave();
    });
    await Promise.all(runs);
    expect(most).toBe(3);
    expect(admission).toMatchObject({ running: 0, waiting: 0 });
  });

  it('forgets one that goes while it waits, and lets the next one have the place', async () => {
    const admission = new Admission({ concurrency: 1, queueLength: 10 });
    const leave = await admission.enter(staying());
    const going = new AbortController();
    const second = admission.enter(going.signal);
    const third = admission.enter(staying());
    going.abort();
    await expect(second).rejects.toMatchObject({ reason: 'gone' });
    expect(admission.waiting).toBe(1);
    leave();
    await third;
    await expect(admission.enter(going.signal)).rejects.toMatchObject({ reason: 'gone' });
  });

  it('closing refuses who waits and who comes, and is idle when the last one leaves', async () => {
    const admission = new Admission({ concurrency: 1, queueLength: 10 });
    const leave = await admission.enter(staying());
    const waiting = admission.enter(staying());
    admission.close();
    await expect(waiting).rejects.toMatchObject({ reason: 'closing' });
    await expect(admission.enter(staying())).rejects.toMatchObject({ reason: 'closing' });
    let idle = false;
    const whenIdle = admission.idle().then(() => (idle = true));
    await turn();
    expect(idle).toBe(false);
    leave();
    await whenIdle;
    await admission.idle();
  });

  it('says to come back later the longer the queue is, within a minute', async () => {
    const admission = new Admission({ concurrency: 1, queueLength: 200 });
    expect(admission.retryAfterSeconds()).toBe(1);
    await admission.enter(staying());
    for (let waiting = 0; waiting < 10; waiting++) void admission.enter(staying());
    expect(admission.retryAfterSeconds()).toBe(10);
    for (let waiting = 0; waiting < 190; waiting++) void admission.enter(staying());
    expect(admission.retryAfterSeconds()).toBe(60);
  });
});
