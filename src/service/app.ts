import type { IncomingMessage } from 'node:http';

import { fastify } from 'fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';

import type { Executor } from '../index.js';
import type { Admission } from './admission.js';
import { readJson } from './body.js';
import { Callers } from './callers.js';
import { failureOf } from './log.js';
import type { Metrics } from './metrics.js';
import { definePage } from './page.js';
import { defineProbes } from './probes.js';
import type { Readiness } from './readiness.js';
import { Refusal } from './refusal.js';
import { defineRun, RUN_HEADER } from './run-route.js';
import type { ServiceSettings } from './settings.js';

/** All that the routes work with. */
export interface ServiceParts {
  settings: ServiceSettings;
  executor: Pick<Executor, 'run'>;
  admission: Admission;
  metrics: Metrics;
  readiness: Readiness;
  log: Logger;
  /** Of the runtime, for `GET /health`. */
  runtimeVersion: string;
}

/** A client that takes longer than this to send its request is cut off. */
const REQUEST_TIMEOUT_MS = 60_000;

/** The service as an app that does not listen yet. */
export async function createApp(parts: ServiceParts): Promise<FastifyInstance> {
  const { settings, log, metrics } = parts;
  const answerError = (error: unknown, reply: FastifyReply): FastifyReply => {
    const refusal = refusalFor(error, log);
    metrics.refused(refusal.reason);
    const run = reply.getHeader(RUN_HEADER);
    log[refusal.status === 500 ? 'error' : 'info']({ run, status: refusal.status, reason: refusal.reason }, 'refused');
    return reply.code(refusal.status).headers(refusal.headers).send(refusal.body);
  };
  const app = fastify({
    logger: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    return503OnClosing: false,
    frameworkErrors: (error, _request, reply) => void answerError(error, reply as FastifyReply),
    clientErrorHandler: answerNonsense,
  });
  app.setErrorHandler((error, _request, reply) => answerError(error, reply));
  app.setNotFoundHandler((_request, reply) => answerError(new Refusal('not-found', 'not found'), reply));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request: FastifyRequest, payload: IncomingMessage) => readJson(payload, settings.maxBodyBytes));
  app.addHook('onRequest', async (request, reply) => {
    // A body is JSON whatever it is called: curl and fetch call it something else unless told.
    delete request.headers['content-type'];
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  });
  const callers = new Callers(settings.token);
  defineRun(app, parts, callers);
  defineProbes(app, parts, callers);
  if (settings.page) await definePage(app, { runtime: settings.runtime, needToken: callers.needToken });
  return app;
}

/** What is not the caller's fault is told in the log only. */
function refusalFor(error: unknown, log: Logger): Refusal {
  if (error instanceof Refusal) return error;
  const { statusCode, code } = error as Partial<FastifyError>;
  if (code === 'FST_ERR_BAD_URL' || code === 'FST_ERR_ROUTE_METHOD_NOT_SUPPORTED') return new Refusal('not-found', 'not found');
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) return new Refusal('invalid-request', 'the request is malformed');
  log.error(failureOf(error), 'internal error');
  return new Refusal('internal-error', 'internal error');
}

/** Bytes that are no HTTP. */
function answerNonsense(error: Error & { code?: string }, socket: { writable: boolean; end(text: string): void; destroy(): void }): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return socket.destroy();
  const body = JSON.stringify(new Refusal('invalid-request', 'the request is malformed').body);
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
