import { getEventListeners } from 'node:events';

import { describe, expect, it } from 'vitest';

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

describe('a signal of somebody else\'s make', () => {
  const throwing = () => {
    throw new Error('no');
  };
  const signalOf = (methods: object) => ({ aborted: false, ...methods }) as unknown as AbortSignal;

  it('may call back without an event, about another object, at once and more than once', () => {
    for (const event of [undefined, {}, { target: null }, { target: new AbortController().signal }]) {
      const callbacks: ((event: unknown) => void)[] = [];
      const add = (_: string, callback: (event: unknown) => void) => callbacks.push(callback);
      const signal = signalOf({ addEventListener: add, removeEventListener: () => undefined });
      const fan = new AbortFan();
      let called = 0;
      const leave = fan.subscribe(signal, () => (called += 1));
      for (let time = 0; time < 2; time++) for (const callback of callbacks) callback(event);
      expect(called).toBe(1);
      leave();
    }
    let atOnce = 0;
    const eager = signalOf({ addEventListener: (_: string, callback: () => void) => callback(), removeEventListener: () => undefined });
    new AbortFan().subscribe(eager, () => (atOnce += 1))();
    expect(atOnce).toBe(1);
  });

  it('is not heard of after its listener has left', () => {
    let late = (): void => undefined;
    const signal = signalOf({ addEventListener: (_: string, callback: () => void) => (late = callback), removeEventListener: () => undefined });
    const fan = new AbortFan();
    let called = 0;
    fan.subscribe(signal, () => (called += 1))();
    late();
    expect(called).toBe(0);
  });

  it.each([throwing, () => Promise.reject(new Error('later'))])('may fail in its methods', async (failing) => {
    const fan = new AbortFan();
    const leave = fan.subscribe(signalOf({ addEventListener: failing, removeEventListener: failing }), () => undefined);
    expect(leave).not.toThrow();
    // An unhandled rejection would fail this test file.
    await new Promise(setImmediate);
  });
});
