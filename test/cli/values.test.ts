import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { bytes, count, cpus, duration, durationText, mebibytes, sizeText, ValueProblem } from '../../src/cli/values.js';

describe('times', () => {
  it.each([
    ['500ms', 500],
    ['5s', 5000],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['1.5s', 1500],
    ['.5s', 500],
    ['0.1ms', 1],
    ['0', 0],
    ['5S', 5000],
  ])('%s is %i ms', (text, milliseconds) => {
    expect(duration(text)).toBe(milliseconds);
  });

  it('without a unit say what to type', () => {
    expect(() => duration('5')).toThrow('needs a unit: type 5s or 5ms');
  });

  it.each(['', 's', '5 years', '-5s', '5s5', '1e3s', 'Infinity', 'NaN', '0x5s', '--', '5d'])('%j is refused', (text) => {
    expect(() => duration(text)).toThrow(ValueProblem);
  });
});

describe('sizes', () => {
  it.each([
    ['100B', 100],
    ['64K', 65_536],
    ['64k', 65_536],
    ['1M', 1_048_576],
    ['1MB', 1_048_576],
    ['1MiB', 1_048_576],
    ['0.5G', 536_870_912],
  ])('%s is %i bytes', (text, size) => {
    expect(bytes(text)).toBe(size);
  });

  it('without a unit say what to type', () => {
    expect(() => bytes('256')).toThrow('type 256M for mebibytes or 256B for bytes');
  });

  it('that are no whole mebibytes are refused where only those can be had', () => {
    expect(mebibytes('1G')).toBe(1024);
    expect(() => mebibytes('100K')).toThrow('type 1M');
    expect(() => mebibytes('1.5M')).toThrow('type 2M');
  });

  it.each(['', 'M', '-1M', '1X', '1Mb2', '1e9B', '0x10M'])('%j is refused', (text) => {
    expect(() => bytes(text)).toThrow(ValueProblem);
  });
});

it('counts and shares are numbers in their range', () => {
  expect(count('64')).toBe(64);
  expect(cpus('0.5')).toBe(0.5);
  expect(cpus('2')).toBe(2);
  for (const text of ['0', '-1', '1.5', '1e3', '', 'many']) expect(() => count(text), text).toThrow(ValueProblem);
  for (const text of ['0', '-1', '1e3', '', '.', 'half']) expect(() => cpus(text), text).toThrow(ValueProblem);
});

it('what a message shows can be typed again', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 45 }), (value) => {
      expect(bytes(sizeText(value))).toBe(value);
      expect(duration(durationText(value))).toBe(value);
    }),
  );
});
