import { kindOf } from './plain-object.js';

const SHOWN_CHARACTERS = 80;

/** `limits.pids`, `args[1]`, `env["a-b"]`. */
export function fieldName(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'options';
  return path.reduce<string>((name, key) => {
    if (typeof key === 'number') return `${name}[${key}]`;
    const part = String(key);
    if (!/^[\w$]+$/.test(part)) return `${name}[${JSON.stringify(part)}]`;
    return name === '' ? part : `${name}.${part}`;
  }, '');
}

/** Fields whose contents are never shown: they may be secrets. */
const SECRET: readonly PropertyKey[] = ['env', 'stdin', 'token'];
/** Fields that may hold a URL with a password in it. */
const HOSTS: readonly PropertyKey[] = ['network', 'url', 'brokerUrl'];

/** What came, in a few words. */
export function shown(value: unknown, field: PropertyKey = ''): string {
  switch (typeof value) {
    case 'string':
      if (SECRET.includes(field)) return kindOf(value);
      return HOSTS.includes(field) ? quotedHost(value) : quoted(value);
    case 'number':
    case 'boolean':
      return field === 'env' ? kindOf(value) : String(value);
    default:
      return kindOf(value);
  }
}

/** In quotes, and cut where it is long. */
function quoted(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${JSON.stringify(text.slice(0, SHOWN_CHARACTERS))}…` : JSON.stringify(text);
}

/** For what should be a host: without what stands before an at sign or behind a question mark, as passwords do. */
export function quotedHost(text: string): string {
  return quoted(text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1…@').replace(/\?.+$/s, '?…'));
}

export function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

/** The known name that a misspelt one most likely stands for: a beginning (`timeout`), or at most two letters off. */
export function nearest(key: string, known: readonly string[]): string | null {
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
