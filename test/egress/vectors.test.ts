import { describe, expect, it } from 'vitest';

import { parseRange, refusal } from '../../src/egress/addresses.js';
import { allowedName, compilePolicy } from '../../src/egress/policy.js';
import { quotedHost } from '../../src/run/option-words.js';
import { readVectors } from './support/vectors.js';
import type { Vector } from './support/vectors.js';

const none = { open: [], own: new Set<string>() };
const policy = compilePolicy({ allow: ['example.com', '*.wild.test'] });

const verdicts: Record<Vector['kind'], (input: string) => Vector['verdict']> = {
  answer: (input) => (refusal(input, none) === null ? 'allow' : 'deny'),
  name: (input) => (allowedName(policy, input) === null ? 'deny' : 'allow'),
  entry: (input) => verdictOf(() => compilePolicy({ allow: [input] })),
  range: (input) => verdictOf(() => parseRange(input)),
};

function verdictOf(act: () => unknown): Vector['verdict'] {
  try {
    act();
    return 'allow';
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return 'error';
    throw error;
  }
}

describe('egress vectors', () => {
  const vectors = readVectors();

  it('are at least 150, of every kind and with no row twice', () => {
    expect(vectors.length).toBeGreaterThanOrEqual(150);
    expect(new Set(vectors.map(({ kind, input }) => `${kind} ${input}`)).size).toBe(vectors.length);
    for (const kind of ['entry', 'answer', 'name', 'range']) expect(vectors.filter((vector) => vector.kind === kind).length).toBeGreaterThan(20);
  });

  it.each(vectors)('$kind $input: $verdict ($note)', ({ kind, input, verdict }) => {
    expect(verdicts[kind](input)).toBe(verdict);
  });

  it.each(vectors.filter(({ kind, verdict }) => kind === 'entry' && verdict === 'error'))(
    'the error for entry $input names field, index, entry and reason',
    ({ input }) => {
      const prefix = `network.allow[1] (${quotedHost(input)}) `;
      expect(() => compilePolicy({ allow: ['example.com', input] })).toThrow(prefix);
      try {
        compilePolicy({ allow: ['example.com', input] });
      } catch (error) {
        expect((error as Error).message.length).toBeGreaterThan(prefix.length + 5);
      }
    },
  );
});
