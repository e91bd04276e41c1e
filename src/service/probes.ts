import type { FastifyInstance } from 'fastify';

import type { ServiceParts } from './app.js';
import type { Callers } from './callers.js';
import { Refusal } from './refusal.js';

/** What orchestrators and Prometheus ask. Only the metrics need the token. */
export function defineProbes(app: FastifyInstance, parts: ServiceParts, callers: Callers): void {
  const { settings, admission, metrics, readiness, runtimeVersion } = parts;
  app.get('/health', async () => ({ ok: true, runtime: settings.runtime, version: runtimeVersion }));
  app.get('/ready', async () => {
    if (admission.closing) throw new Refusal('shutting-down', 'the service is shutting down');
    const problem = await readiness.problem();
    if (problem !== null) throw new Refusal('not-ready', `a trial run failed (${problem}): "ringfence doctor" says what this machine can do`);
    return { ok: true };
  });
  app.get('/metrics', { onRequest: async ({ headers }) => callers.check(headers) }, async (_request, reply) => {
    void reply.type(metrics.contentType);
    return metrics.text();
  });
}
