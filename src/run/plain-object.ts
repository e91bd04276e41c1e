import { types } from 'node:util';

/**
 * An object whose entries are its own properties. A Map, say, or an instance of some class has them elsewhere: taken for an
 * object of options it would be an empty one, in silence.
 */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // That of another realm is as good. Node makes `process.env` of a class of its own.
  return prototype === null || Object.getPrototypeOf(prototype) === null || value === process.env;
}

/** What it is, in two words and without its contents: `a string`, `an array`, `a Map`. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== 'object') return withArticle(typeof value);
  if (types.isProxy(value)) return 'a Proxy';
  if (Array.isArray(value)) return 'an array';
  if (isPlainObject(value)) return 'an object';
  const { name } = (value.constructor ?? {}) as { name?: unknown };
  return typeof name === 'string' && /^[\w$]{1,40}$/.test(name) ? withArticle(name) : 'an object';
}

function withArticle(noun: string): string {
  return `${/^[aeiou]/i.test(noun) && !/^u(ni|int)/i.test(noun) ? 'an' : 'a'} ${noun}`;
}
