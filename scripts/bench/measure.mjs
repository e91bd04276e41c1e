// Samples taken in turn, so that every contender meets the same noise; medians and ratios are what is compared.

/** The middle of the samples. */
export function median(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Runs each contender `rounds` times, A B C A B C ..., after `warmup` rounds that do not count.
 * @param {Record<string, () => Promise<number | void>>} contenders return their own figure, or nothing to be timed in milliseconds
 * @returns {Promise<Record<string, number[]>>}
 */
export async function inTurn(contenders, { rounds, warmup }) {
  const samples = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  for (let round = -warmup; round < rounds; round++) {
    for (const [name, run] of Object.entries(contenders)) {
      const start = performance.now();
      const own = await run();
      const figure = typeof own === 'number' ? own : performance.now() - start;
      if (round >= 0) samples[name].push(figure);
    }
  }
  return samples;
}

/** A Markdown table of medians, and of each one's ratio to the first contender of its row. */
export function table(title, unit, rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.samples)))];
  const lines = [`### ${title} (${unit}, median; ratio to ${names[0]})`, `| | ${names.join(' | ')} |`, `|---|${names.map(() => '---|').join('')}`];
  for (const row of rows) {
    const first = median(row.samples[names[0]]);
    const cells = names.map((name) => {
      if (!row.samples[name]) return 'not installed';
      const value = median(row.samples[name]);
      return name === names[0] ? value.toFixed(2) : `${value.toFixed(2)} (${(value / first).toFixed(2)})`;
    });
    lines.push(`| ${row.name} | ${cells.join(' | ')} |`);
  }
  return lines.join('\n');
}
