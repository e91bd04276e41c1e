import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

import type { FastifyInstance } from 'fastify';

export interface PageFacts {
  runtime: 'deno' | 'node';
  needToken: boolean;
}

const FILES = [
  { route: '/', name: 'page.html', type: 'text/html; charset=utf-8' },
  { route: '/page.css', name: 'page.css', type: 'text/css; charset=utf-8' },
  { route: '/page.svg', name: 'page.svg', type: 'image/svg+xml' },
  { route: '/page.js', name: 'page.js', type: 'text/javascript; charset=utf-8' },
] as const;

const HEADERS = {
  // Nothing that a guest prints can become markup with an effect, even if the page had a fault.
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; " +
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** The page for browsers: static files, all that it does it does through `POST /run`. */
export async function definePage(app: FastifyInstance, { runtime, needToken }: PageFacts): Promise<void> {
  const directory = pageDirectory();
  for (const { route, name, type } of FILES) {
    const text = await readFile(new URL(name, directory), 'utf8');
    const content = text.replace('data-runtime=""', `data-runtime="${runtime}"${needToken ? ' data-token' : ''}`);
    app.get(route, async (_request, reply) => {
      void reply.headers(HEADERS).type(type);
      return content;
    });
  }
}

/** From the sources, as tests run them, the build's output is one directory over. */
function pageDirectory(): URL {
  const beside = new URL('./page/', import.meta.url);
  return existsSync(new URL('page.js', beside)) ? beside : new URL('../../dist/service/page/', import.meta.url);
}
