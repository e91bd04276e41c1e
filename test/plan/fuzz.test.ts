/** The launcher's parser against bytes that no host sends; `npm run fuzz` makes it a million. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';

import { fuzzInputs, fuzzSeed } from '../support/fuzz.js';
import { patience, whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { temporaryDirectory } from '../support/temporary.js';
import { planRun } from '../../src/plan/plan-run.js';
import { factsForPlans, optionsForPlans } from './planning.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const SANITIZERS = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-fno-omit-frame-pointer'];

function buildTarget(): string {
  const output = path.join(root, 'build/fuzz/plan');
  mkdirSync(path.dirname(output), { recursive: true });
  const sources = ['test/fixtures/fuzz/plan.cc', 'native/launcher/plan.cc', 'native/launcher/report.cc'].map((file) => path.join(root, file));
  const flags = ['-std=c++17', '-g', '-O1', '-Wall', '-Wextra', '-Werror', ...SANITIZERS, `-I${path.join(root, 'native/shared')}`];
  execFileSync(process.env['CXX'] ?? 'c++', [...flags, '-o', output, ...sources], { stdio: ['ignore', 'inherit', 'inherit'] });
  return output;
}

const inputs = fuzzInputs(20_000);

it(`reads ${inputs} plans that are none, or are by accident, and nothing beyond their end`, { timeout: patience(60_000) + inputs }, async (context) => {
  // The sanitizers' shadow does not fit into its address space.
  belongsHere(context, !whereAmI().uml, 'outside User-Mode Linux');
  const directory = temporaryDirectory();
  const seeds = [
    Buffer.from(readFileSync(path.join(root, 'test/plan/plan.golden.hex'), 'utf8').replace(/\s/g, ''), 'hex'),
    (await planRun(optionsForPlans(), await factsForPlans(), new Set())).encoded,
  ].map((bytes, index) => {
    const file = path.join(directory, `seed-${index}`);
    writeFileSync(file, bytes);
    return file;
  });
  const said = execFileSync(buildTarget(), [String(inputs), String(fuzzSeed()), ...seeds], { encoding: 'utf8' });
  const [, read, accepted] = /^(\d+) inputs, (\d+) plans$/m.exec(said) ?? [];
  expect(Number(read)).toBe(inputs);
  // The control: some of them get as far as the end of the parser.
  expect(Number(accepted)).toBeGreaterThan(inputs / 1000);
});
