import { optionsSchema } from './option-schema.js';
import { fieldName, lastPart, nearest, shown } from './option-words.js';

/** The part of zod's issues that is used here. */
interface Issue {
  code?: string | undefined;
  path: PropertyKey[];
  message: string;
  expected?: string | undefined;
  keys?: string[] | undefined;
  params?: Record<string, unknown> | undefined;
}

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
