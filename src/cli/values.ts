/** What a flag's text is turned into. Each takes the text and gives the number, or throws a ValueProblem that says what to type. */

/** A flag's value that cannot be used. The message says what was expected, for example `needs a unit: type 5s or 5ms`. */
export class ValueProblem extends Error {
  override readonly name = 'ValueProblem';
}

const MIB = 1024 * 1024;
const MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const BYTES: Readonly<Record<string, number>> = { b: 1, k: 1024, m: MIB, g: 1024 * MIB, t: 1024 * 1024 * MIB };

/** `500ms`, `5s`, `1.5m`, `2h` or a bare `0`: milliseconds, rounded up to a whole one. */
export function duration(text: string): number {
  const { amount, unit } = split(text);
  if (amount === null) throw new ValueProblem('must be a time such as 500ms, 5s or 2m');
  if (unit === '' && amount === 0) return 0;
  if (unit === '') throw new ValueProblem(`needs a unit: type ${text.trim()}s or ${text.trim()}ms`);
  const factor = MILLISECONDS[unit];
  if (factor === undefined) throw new ValueProblem('must end in ms, s, m or h, for example 5s');
  return Math.ceil(amount * factor);
}

/** `100B`, `64K`, `8M`, `1G`: bytes. */
export function bytes(text: string): number {
  const { amount, unit } = split(text);
  if (amount === null) throw new ValueProblem('must be a size such as 64K, 256M or 1G');
  if (unit === '') throw new ValueProblem(`needs a unit: type ${text.trim()}M for mebibytes or ${text.trim()}B for bytes`);
  // M, MB and MiB are the same here: 1024 * 1024 bytes, as for docker and systemd.
  const factor = BYTES[unit.length > 1 ? unit.replace(/i?b$/, '') : unit];
  if (factor === undefined) throw new ValueProblem('must end in B, K, M, G or T, for example 256M');
  return Math.ceil(amount * factor);
}

/** As `bytes`, in whole mebibytes. */
export function mebibytes(text: string): number {
  const size = bytes(text);
  if (size % MIB !== 0) throw new ValueProblem(`must be whole mebibytes: type ${Math.max(1, Math.ceil(size / MIB))}M`);
  return size / MIB;
}

/** A positive whole number. */
export function count(text: string): number {
  if (!/^\d+$/.test(text) || Number(text) === 0) throw new ValueProblem('must be a whole number from 1 up');
  return Number(text);
}

/** Processors' worth of time: `0.5`, `2`. */
export function cpus(text: string): number {
  if (!/^(\d+(\.\d*)?|\.\d+)$/.test(text) || Number(text) < 0.01) throw new ValueProblem('must be a number of processors from 0.01 up, for example 0.5');
  return Number(text);
}

/** A size as the flags take it, in the largest unit that leaves it whole. */
export function sizeText(size: number): string {
  for (const unit of ['T', 'G', 'M', 'K']) {
    const factor = BYTES[unit.toLowerCase()] ?? 1;
    if (size >= factor && size % factor === 0) return `${size / factor}${unit}`;
  }
  return `${size}B`;
}

/** A time as the flags take it. */
export function durationText(milliseconds: number): string {
  for (const unit of ['h', 'm', 's']) {
    const factor = MILLISECONDS[unit] ?? 1;
    if (milliseconds >= factor && milliseconds % factor === 0) return `${milliseconds / factor}${unit}`;
  }
  return `${milliseconds}ms`;
}

function split(text: string): { amount: number | null; unit: string } {
  const match = /^\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*$/i.exec(text);
  return { amount: match?.[1] === undefined ? null : Number(match[1]), unit: (match?.[2] ?? '').toLowerCase() };
}
