import { z } from 'zod';

import { firstProblem } from '../run/option-problem.js';
import { MAX_TIMER_MS, positiveInteger, shaped } from '../run/option-schema.js';
import type { HttpSandboxOptions } from './adapter.js';

const URL_EXPECTED = 'must be an http or https URL without user, password, query and fragment';

const schema = z.strictObject(
  {
    // An empty one is an absent one, as the variable is.
    url: z.string(URL_EXPECTED).refine((text) => text === '' || endpointOf(text) !== null, URL_EXPECTED).optional(),
    // What a header cannot carry would be an error of each request, with the token in it.
    token: z.string('must be a string').regex(/^[\x21-\x7e]*$/, 'must be of visible ASCII characters').optional(),
    fetchTimeoutMs: positiveInteger(MAX_TIMER_MS).optional(),
    validateEgress: z.boolean('must be a boolean').optional(),
    fetch: shaped<typeof fetch>((value) => typeof value === 'function', 'must be a function').optional(),
  },
  'must be an object',
);

/** @throws TypeError or RangeError that names the field, what was expected and what came. */
export function checkAdapterOptions(options: unknown): HttpSandboxOptions {
  const parsed = schema.safeParse(options);
  if (!parsed.success) throw firstProblem(parsed.error.issues, options, { own: Object.keys(schema.shape), sections: {} });
  return parsed.data;
}

/** Where to post to: `/run` below the given path. Null for what is no place of a service. */
export function endpointOf(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  // A lone "?" or "#" leaves nothing in `search` or `hash`, and would still end the path.
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '' || /[?#]/.test(text)) return null;
  url.pathname = `${url.pathname.replace(/\/+$/, '').replace(/\/run$/, '')}/run`;
  return url.href;
}
