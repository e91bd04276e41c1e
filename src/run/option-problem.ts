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

/** The known names: of the options themselves, and of those inside each section. */
export interface OptionNames {
  own: readonly string[];
  sections: Readonly<Record<string, readonly string[]>>;
}

/** The first thing that is wrong with the options, as the error to throw. */
export function firstProblem(issues: readonly Issue[], input: unknown, names: OptionNames): Error {
  // A misspelt name first: what it was meant for is then "missing", which would send the reader the wrong way.
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  if (issue === undefined) return new TypeError('options must be valid');
  if (issue.code === 'unrecognized_keys') return unknownField(issue, names);
  const value = valueAt(input, issue.path);
  const message = `${fieldName(issue.path)} ${issue.message}, got ${shown(value, issue.path[0])}`;
  return isWrongType(issue, value) ? new TypeError(message) : new RangeError(message);
}

function unknownField(issue: Issue, names: OptionNames): TypeError {
  const key = issue.keys?.[0] ?? '';
  const name = fieldName([...issue.path, key]);
  const here = Object.keys(names.sections).find((section) => section === issue.path[0]) ?? null;
  const meant = nearest(key, fieldsOf(here, names)) ?? elsewhere(key, here, names);
  const hint = meant === null ? `known are ${fieldsOf(here, names).join(', ')}` : `did you mean ${meant}?`;
  return new TypeError(`${name} is not a known option; ${hint}`);
}

function fieldsOf(section: string | null, { own, sections }: OptionNames): readonly string[] {
  return section === null ? own : (sections[section] ?? []).map((name) => `${section}.${name}`);
}

/** A field that was put into the wrong section: `memoryMb` beside `limits`, `cwd` inside `filesystem`. */
function elsewhere(key: string, here: string | null, names: OptionNames): string | null {
  const others = [null, ...Object.keys(names.sections)].filter((section) => section !== here).flatMap((section) => fieldsOf(section, names));
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
