import { optionsSchema } from './option-schema.js';

/** The part of zod's issues that is used here. */
interface Issue {
  code?: string | undefined;
  path: PropertyKey[];
  message: string;
  expected?: string | undefined;
  keys?: string[] | undefined;
  params?: Record<string, unknown> | undefined;
}

const SHOWN_CHARACTERS = 80;
const SECTIONS = ['filesystem', 'limits'] as const;
type Section = (typeof SECTIONS)[number];

/** The first thing that is wrong with the options, as the error to throw. */
export function firstProblem(issues: readonly Issue[], input: unknown): Error {
  // A misspelt name first: what it was meant for is then "missing", which would send the reader the wrong way.
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  if (issue === undefined) return new TypeError('options must be valid');
  if (issue.code === 'unrecognized_keys') return unknownField(issue);
  const value = valueAt(input, issue.path);
  const message = `${fieldName(issue.path)} ${issue.message}, got ${shown(value, issue.path[0])}`;
  return isWrongType(issue, value) ? new TypeError(message) : new RangeError(message);
}

function unknownField(issue: Issue): TypeError {
  const key = issue.keys?.[0] ?? '';
  const name = fieldName([...issue.path, key]);
  const here = SECTIONS.find((section) => section === issue.path[0]) ?? null;
  const meant = nearest(key, fieldsOf(here)) ?? elsewhere(key, here);
  const hint = meant === null ? `known are ${fieldsOf(here).join(', ')}` : `did you mean ${meant}?`;
  return new TypeError(`${name} is not a known option; ${hint}`);
}

function fieldsOf(section: Section | null): string[] {
  if (section === null) return Object.keys(optionsSchema.shape);
  return Object.keys(optionsSchema.shape[section].unwrap().shape).map((name) => `${section}.${name}`);
}

/** A field that was put into the wrong section: `memoryMb` beside `limits`, `cwd` inside `filesystem`. */
function elsewhere(key: string, here: Section | null): string | null {
  const others = [null, ...SECTIONS].filter((section) => section !== here).flatMap(fieldsOf);
  return others.find((name) => lastPart(name) === key) ?? null;
}

function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

function isWrongType({ code, expected, params }: Issue, value: unknown): boolean {
  if (value === undefined || params?.['wrongType'] === true) return true;
  // zod calls NaN and Infinity a wrong type; to a caller they are numbers with a wrong value.
  if (code === 'invalid_type') return typeof value !== 'number' || (expected !== 'number' && expected !== 'int');
  if (code === 'invalid_value') return typeof value !== 'string';
  return false;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (value === null || value === undefined ? undefined : (value as Record<PropertyKey, unknown>)[key]),
    input,
  );
}

function fieldName(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'options';
  return path.reduce<string>((name, key) => {
    if (typeof key === 'number') return `${name}[${key}]`;
    const part = String(key);
    if (!/^[\w$]+$/.test(part)) return `${name}[${JSON.stringify(part)}]`;
    return name === '' ? part : `${name}.${part}`;
  }, '');
}

/** What came, in a few words. Contents of env and stdin are never shown: they may be secrets. */
function shown(value: unknown, field: PropertyKey | undefined): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  switch (typeof value) {
    case 'string': {
      if (field === 'env' || field === 'stdin') return 'a string';
      const cut = value.length > SHOWN_CHARACTERS;
      return cut ? `${JSON.stringify(value.slice(0, SHOWN_CHARACTERS))}…` : JSON.stringify(value);
    }
    case 'number':
    case 'boolean':
      return field === 'env' ? `a ${typeof value}` : String(value);
    case 'object':
      return 'an object';
    default:
      return `a ${typeof value}`;
  }
}

/** The known name that a misspelt one most likely stands for: a beginning (`timeout`), or at most two letters off. */
function nearest(key: string, known: readonly string[]): string | null {
  const lower = key.toLowerCase();
  const beginning = known.find((name) => lower.length >= 3 && lastPart(name).toLowerCase().startsWith(lower));
  if (beginning !== undefined) return beginning;
  const close = known
    .map((name) => ({ name, distance: editDistance(lower, lastPart(name).toLowerCase()) }))
    .filter(({ name, distance }) => distance <= 2 && distance < lastPart(name).length / 2)
    .sort((a, b) => a.distance - b.distance);
  return close[0]?.name ?? null;
}

function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substitution));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
