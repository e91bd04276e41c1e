import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

import { isLoopback } from './loopback.js';
import { Refusal } from './refusal.js';

/** Who may call. */
export class Callers {
  readonly #expected: Buffer | null;

  /** `token`: what a caller has to know; null when nobody but this machine can call. */
  constructor(token: string | null) {
    this.#expected = token === null ? null : digest(token);
  }

  get needToken(): boolean {
    return this.#expected !== null;
  }

  /** @throws Refusal */
  check(headers: IncomingHttpHeaders): void {
    this.#checkToken(headers);
    this.#checkPage(headers);
  }

  #checkToken({ authorization = '' }: IncomingHttpHeaders): void {
    if (this.#expected === null) return;
    const [, given = ''] = /^bearer +(\S+) *$/i.exec(authorization) ?? [];
    // Of equal length, whatever was given: the time tells nothing.
    if (timingSafeEqual(digest(given), this.#expected)) return;
    throw new Refusal('unauthorized', 'a valid bearer token is needed', { 'www-authenticate': 'Bearer' });
  }

  /**
   * Any page that somebody on this machine looks at can make their browser post to a service on loopback, and with a name of
   * its own that it lets point there (DNS rebinding) read the answers as well. Browsers tell in `Origin` whose page it is.
   */
  #checkPage({ origin, host = '' }: IncomingHttpHeaders): void {
    if (origin === undefined) return;
    const page = URL.canParse(origin) ? new URL(origin) : null;
    const isOwn = page !== null && page.host === host.toLowerCase();
    if (isOwn && (this.#expected !== null || isLoopback(page.hostname.replace(/^\[(.*)\]$/, '$1')))) return;
    throw new Refusal('foreign-page', 'pages of other origins may not call');
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
