import type { GuestAnswer } from '../guest/answer.js';
import { refusal } from '../guest/guest-run.js';
import { compileGuestNetwork, egressProblem } from '../guest/network.js';
import { checkRequest } from '../guest/request.js';
import type { CheckedRequest, GuestRequest } from '../guest/request.js';
import { checkAdapterOptions, endpointOf } from './options.js';

export interface HttpSandboxOptions {
  /** Where `ringfence serve` is, for example `http://127.0.0.1:8787`. Default: SANDBOX_URL. */
  url?: string | undefined;
  /** What the service wants as a bearer token. Default: SANDBOX_TOKEN. */
  token?: string | undefined;
  /** Milliseconds to wait for an answer. Default: the run's own timeout and ten seconds. */
  fetchTimeoutMs?: number | undefined;
  /** Judge `net` and `import` here already, without a request. Default: true; false where the service opens private ranges. */
  validateEgress?: boolean | undefined;
  /** In place of the global one. */
  fetch?: typeof fetch | undefined;
}

export interface HttpSandboxAdapter {
  /**
   * Runs one function by way of the service. Whatever goes wrong on the way is an answer with `ok: false` that says what:
   * the codes are `unreachable`, `no-answer` (too late), `bad-answer`, and `http-429` and the like for a refusal.
   * @throws Error when there is no url, or SANDBOX_URL is none.
   */
  run(request: Omit<GuestRequest, 'onLog'>): Promise<GuestAnswer>;
}

/** @throws TypeError or RangeError for an option that is wrong. */
export function httpSandboxAdapter(given: HttpSandboxOptions = {}): HttpSandboxAdapter {
  const options = checkAdapterOptions(given);
  return {
    async run(request) {
      const url = options.url ?? process.env['SANDBOX_URL'] ?? '';
      if (url === '') throw new Error('httpSandboxAdapter has no url: give it one, or set SANDBOX_URL');
      const endpoint = endpointOf(url);
      if (endpoint === null) throw new Error('SANDBOX_URL must be an http or https URL without user, password, query and fragment');
      const startedAt = performance.now();
      const checked = checkRequest(request);
      if ('problem' in checked) return refusal(startedAt, 'invalid-request', checked.problem);
      const early = await problemOf(checked, options.validateEgress ?? true, startedAt);
      return early ?? new Call(options, endpoint, checked, startedAt).answer(request);
    },
  };
}

async function problemOf(request: CheckedRequest, validateEgress: boolean, startedAt: number): Promise<GuestAnswer | null> {
  if (request.bindings.kind === 'functions') return refusal(startedAt, 'invalid-request', 'bindings must be { url, token }: functions cannot be called over HTTP');
  if (!validateEgress) return null;
  try {
    await compileGuestNetwork(request.net, request.import, {});
    return null;
  } catch (error) {
    return refusal(startedAt, 'egress-blocked', egressProblem(error));
  }
}

/** One request to the service. */
class Call {
  readonly #options: HttpSandboxOptions;
  readonly #endpoint: string;
  readonly #timeoutMs: number;
  readonly #startedAt: number;

  constructor(options: HttpSandboxOptions, endpoint: string, { timeoutMs }: CheckedRequest, startedAt: number) {
    this.#options = options;
    this.#endpoint = endpoint;
    this.#timeoutMs = options.fetchTimeoutMs ?? timeoutMs + 10_000;
    this.#startedAt = startedAt;
  }

  async answer({ source, input, capabilities = {}, secrets, bindings, signal }: Omit<GuestRequest, 'onLog'>): Promise<GuestAnswer> {
    const body = JSON.stringify({ source, input, capabilities, secrets, bindings });
    const deadline = AbortSignal.timeout(this.#timeoutMs);
    try {
      return await this.#post(body, signal === undefined ? deadline : AbortSignal.any([signal, deadline]));
    } catch (error) {
      if (signal?.aborted === true) return this.#failed('canceled', 'the run was canceled');
      if (deadline.aborted) return this.#failed('no-answer', `timed out: no answer of the sandbox service within ${this.#timeoutMs} ms`);
      return this.#failed('unreachable', `the sandbox service cannot be reached: ${reasonOf(error)}`);
    }
  }

  async #post(body: string, signal: AbortSignal): Promise<GuestAnswer> {
    const token = this.#options.token ?? process.env['SANDBOX_TOKEN'] ?? '';
    const response = await (this.#options.fetch ?? fetch)(this.#endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(token === '' ? {} : { authorization: `Bearer ${token}` }) },
      body,
      signal,
      // Secrets must not be carried to wherever a redirect leads.
      redirect: 'manual',
    });
    const text = await response.text();
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch {
      return this.#failed('bad-answer', `the sandbox service gave a non-JSON answer (HTTP ${response.status})`);
    }
    if (!isAnswer(answer)) return this.#failed('bad-answer', `the sandbox service gave JSON that is no answer (HTTP ${response.status})`);
    if (response.status === 200) return answer as GuestAnswer;
    return this.#failed(`http-${response.status}`, answer.error ?? `the sandbox service answered HTTP ${response.status}`);
  }

  #failed(code: string, error: string): GuestAnswer {
    return refusal(this.#startedAt, code, error);
  }
}

function isAnswer(value: unknown): value is { ok: boolean; error?: string } {
  if (typeof value !== 'object' || value === null) return false;
  const { ok, error } = value as { ok?: unknown; error?: unknown };
  return typeof ok === 'boolean' && (ok || typeof error === 'string');
}

/** The system's word for it. Not a message: undici's quote the URL, which may have a password in it. */
function reasonOf(error: unknown): string {
  // A caller's own fetch may throw anything.
  const { code } = ((error as Error | null)?.cause ?? error ?? {}) as NodeJS.ErrnoException;
  return code === 'ECONNREFUSED' ? 'connection refused (ECONNREFUSED)' : (code ?? 'the request failed');
}
