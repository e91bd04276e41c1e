import { z } from 'zod';

import { failed } from './calls.js';
import type { Callee } from './calls.js';
import { MAX_FRAME_BYTES } from './channel.js';
import { parseForeignJson } from './json.js';
import type { Reply } from './messages.js';

const TOKEN_HEADER = 'x-questpie-sandbox-token';
const CALL_MS = 10_000;
const MAX_CALLS = 256;
const MAX_AT_A_TIME = 16;
/** What the guest's surface can call: a guest that writes to the channel by itself gets no other method past the host. */
const METHOD = /^(?:(?:collections|store)\.[^.]+\.(?:find|findOne|create|update|delete)|files\.(?:read|write|list)|tools\.(?:list|call)|http\.fetch)$/;

const brokerAnswer = z.union([
  z.object({ ok: z.literal(true), value: z.unknown().optional() }),
  z.object({ ok: z.literal(false), error: z.object({ code: z.string(), message: z.string() }) }),
]);

/** Relays the calls of one run to a broker. The guest knows neither its URL nor the token, whatever goes wrong. */
export class BrokerCallee implements Callee {
  readonly #url: string;
  readonly #token: string;
  readonly #ending = new AbortController();
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;
  #calls = 0;

  constructor({ url, token }: { url: string; token: string }) {
    this.#url = url;
    this.#token = token;
  }

  async answer(method: string, args: unknown): Promise<Reply> {
    if (++this.#calls > MAX_CALLS) return failed('too_many_calls', `more than ${MAX_CALLS} calls`);
    if (!METHOD.test(method)) return failed('bad_method', `there is no ${method}`);
    if (this.#underWay >= MAX_AT_A_TIME) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#underWay++;
    try {
      return await this.#relay(method, args);
    } finally {
      this.#underWay--;
      this.#waiting.shift()?.();
    }
  }

  close(): void {
    this.#ending.abort();
  }

  async #relay(method: string, args: unknown): Promise<Reply> {
    if (this.#ending.signal.aborted) return failed('canceled', 'the run has ended');
    const deadline = AbortSignal.timeout(CALL_MS);
    try {
      const response = await fetch(this.#url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', [TOKEN_HEADER]: this.#token },
        body: JSON.stringify({ method, args }),
        // The token must not be carried to wherever a redirect leads.
        redirect: 'manual',
        signal: AbortSignal.any([deadline, this.#ending.signal]),
      });
      return await this.#read(response);
    } catch {
      return deadline.aborted ? failed('timeout', `the call took more than ${CALL_MS / 1000} s`) : failed('unavailable', 'the broker cannot be reached');
    }
  }

  async #read(response: Response): Promise<Reply> {
    if (response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400)) {
      await response.body?.cancel();
      return failed('redirect', 'the broker answered with a redirect');
    }
    const text = await textOf(response);
    if (text === null) return failed('too_large', `the answer has more than ${MAX_FRAME_BYTES} bytes`);
    const parsed = brokerAnswer.safeParse(safely(text));
    if (!parsed.success) return failed('bad_answer', `the broker gave no answer (HTTP ${response.status})`);
    return parsed.data.ok ? { ok: true, value: parsed.data.value } : { ok: false, error: parsed.data.error };
  }
}

async function textOf(response: Response): Promise<string | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += (chunk as Uint8Array).length;
    // Leaving the loop cancels the rest.
    if (length > MAX_FRAME_BYTES) return null;
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function safely(text: string): unknown {
  try {
    return parseForeignJson(text);
  } catch {
    return null;
  }
}

/** Why a run may not have this broker; null when it may. `expected` is the one that the operator allows, if it is one. */
export function brokerProblem(url: string, expected: string | undefined): string | null {
  const given = normalised(url);
  if (given === null) return 'the url must be an http or https URL without user, password and fragment';
  if (expected === undefined) return null;
  return given === normalised(expected) ? null : 'the url is not that of the configured broker';
}

function normalised(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '' || url.hash !== '') return null;
  return `${url.origin}${url.pathname.replace(/\/$/, '')}${url.search}`;
}
