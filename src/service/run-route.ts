import { randomUUID } from 'node:crypto';

import type { FastifyInstance, FastifyReply } from 'fastify';

import type { GuestAnswer } from '../index.js';
import { NotAdmitted } from './admission.js';
import type { ServiceParts } from './app.js';
import type { Callers } from './callers.js';
import { failureOf, runFigures } from './log.js';
import { Refusal } from './refusal.js';
import { runRequestOf } from './run-request.js';
import type { RunRequest } from './run-request.js';

/** The answer says by it which run the log is about. */
export const RUN_HEADER = 'x-ringfence-run';

/** `POST /run`: one function, in a sandbox of its own. */
export function defineRun(app: FastifyInstance, parts: ServiceParts, callers: Callers): void {
  const onRequest = async ({ headers }: { headers: Parameters<Callers['check']>[0] }) => {
    // Before the body is read, let alone understood.
    callers.check(headers);
    if (parts.admission.closing) throw shuttingDown();
  };
  app.post('/run', { onRequest }, async ({ body }, reply) => {
    const run = randomUUID();
    void reply.header(RUN_HEADER, run);
    // Nothing at all is no JSON either.
    if (body === undefined) throw new Refusal('invalid-json', 'invalid JSON body');
    return new RunHandling(parts, run, reply).answer(runRequestOf(body));
  });
}

class RunHandling {
  readonly #parts: ServiceParts;
  readonly #run: string;
  readonly #hangUp = new AbortController();

  constructor(parts: ServiceParts, run: string, reply: FastifyReply) {
    this.#parts = parts;
    this.#run = run;
    // Comes after every answer too, where there is nothing left to be canceled.
    reply.raw.once('close', () => this.#hangUp.abort());
    if (reply.raw.destroyed) this.#hangUp.abort();
  }

  async answer(request: RunRequest): Promise<GuestAnswer> {
    const { admission, executor, metrics, log } = this.#parts;
    const arrivedAt = performance.now();
    const leave = await this.#admitted();
    const startedAt = performance.now();
    const queuedMs = startedAt - arrivedAt;
    try {
      const answer = await executor.run({ ...request, signal: this.#hangUp.signal });
      metrics.ran(answer, queuedMs, performance.now() - startedAt);
      log.info({ run: this.#run, ...runFigures(answer, queuedMs), running: admission.running, waiting: admission.waiting }, 'run');
      return answer;
    } catch (error) {
      log.error({ run: this.#run, ...failureOf(error) }, 'a run failed in the service itself');
      throw error;
    } finally {
      leave();
    }
  }

  async #admitted(): Promise<() => void> {
    const { admission } = this.#parts;
    try {
      return await admission.enter(this.#hangUp.signal);
    } catch (error) {
      if (!(error instanceof NotAdmitted)) throw error;
      switch (error.reason) {
        case 'closing':
          throw shuttingDown();
        case 'full':
          throw new Refusal('queue-full', 'too many runs: the queue is full', { 'retry-after': String(admission.retryAfterSeconds()) });
        case 'gone':
          throw new Refusal('hung-up', 'the client has gone');
      }
    }
  }
}

function shuttingDown(): Refusal {
  return new Refusal('shutting-down', 'the service is shutting down', { connection: 'close', 'retry-after': '5' });
}
