// npm run fuzz [-- COUNT [SEED]]: a million inputs, or COUNT, to the launcher's plan parser (under the address and
// undefined-behaviour sanitizers) and to the host's record decoder. The inputs follow from the seed; without one it is new
// each time, and printed.
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [count = '1000000', seed = String(randomInt(2 ** 31))] = process.argv.slice(2);
console.log(`${count} inputs each, of seed ${seed}`);
const tests = ['test/plan/fuzz.test.ts', 'test/launcher/records.test.ts'];
const { status } = spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...tests], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, RINGFENCE_FUZZ: count, RINGFENCE_FUZZ_SEED: seed },
});
process.exitCode = status ?? 1;
