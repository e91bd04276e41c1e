import { getEventListeners } from 'node:events';

import { expect, it } from 'vitest';

import { AbortFan } from '../../src/run/abort.js';

it('serves many listeners through one, and leaves none behind', () => {
  const fan = new AbortFan();
  const { signal } = new AbortController();
  const leave = Array.from({ length: 100 }, () => fan.subscribe(signal, () => undefined));
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  for (const each of leave) each();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it('calls each listener that is still there, once', () => {
  const fan = new AbortFan();
  const controller = new AbortController();
  const called: number[] = [];
  const leaves = [1, 2, 3].map((id) => fan.subscribe(controller.signal, () => called.push(id)));
  leaves[1]?.();
  controller.abort();
  for (const leave of leaves) leave();
  expect(called).toEqual([1, 3]);
});

it('keeps signals, and the second round of one signal, apart', () => {
  const fan = new AbortFan();
  const [first, second] = [new AbortController(), new AbortController()];
  const called: string[] = [];
  const leaveFirst = fan.subscribe(first.signal, () => called.push('old'));
  leaveFirst();
  fan.subscribe(first.signal, () => called.push('first'));
  leaveFirst();
  fan.subscribe(second.signal, () => called.push('second'));
  first.abort();
  expect(called).toEqual(['first']);
});
