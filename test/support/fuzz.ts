/** How many inputs a fuzz test tries: few in the suite, as many as RINGFENCE_FUZZ says with `npm run fuzz`. */
export function fuzzInputs(few: number): number {
  const asked = Number(process.env['RINGFENCE_FUZZ'] ?? '');
  return Number.isInteger(asked) && asked > 0 ? asked : few;
}

/** The same inputs each time, unless RINGFENCE_FUZZ_SEED says otherwise. */
export function fuzzSeed(): number {
  return Number(process.env['RINGFENCE_FUZZ_SEED'] ?? 1);
}
