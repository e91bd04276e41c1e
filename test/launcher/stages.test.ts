import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

import { endCauses, fenceBits, RECORD_BYTES } from '../../src/launcher/records.js';
import { stages } from '../../src/launcher/stages.js';

function shared(file: string): string {
  return readFileSync(new URL(`../../native/shared/${file}`, import.meta.url), 'utf8');
}

function kebab(identifier: string): string {
  return identifier.replace(/([a-z])([A-Z])/g, '$1-$2').toLowerCase();
}

it('has the stages of native/shared/stages.def, in its order', () => {
  const native = [...shared('stages.def').matchAll(/^STAGE\(k(\w+), "([\w-]+)"\)/gm)];
  expect(native.length).toBeGreaterThan(20);
  expect(stages).toEqual(native.map(([, , name]) => name));
  for (const [, identifier, name] of native) expect(kebab(identifier ?? '')).toBe(name);
});

it('has the fence bits, end causes and record size of native/shared/protocol.h', () => {
  const header = shared('protocol.h');
  const bits = [...header.matchAll(/^\s+kFence(\w+) = 1u << (\d+),/gm)];
  expect(bits.map(([, , bit]) => Number(bit))).toEqual(bits.map((_, index) => index));
  expect(fenceBits).toEqual(bits.map(([, name]) => kebab(name ?? '')));

  const block = /enum class EndCause[^{]*\{([^}]*)\}/.exec(header)?.[1] ?? '';
  const causes = [...block.matchAll(/k(\w+) = (\d+)/g)];
  expect(causes.map(([, , value]) => Number(value))).toEqual(causes.map((_, index) => index));
  expect(endCauses).toEqual(causes.map(([, name]) => kebab(name ?? '')));

  expect(header).toContain(`sizeof(Record) == ${RECORD_BYTES}`);
});
