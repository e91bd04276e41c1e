import type { AddressInfo } from 'node:net';

import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';

import { createExecutor } from '../index.js';
import type { Executor } from '../index.js';
import { Admission } from './admission.js';
import { createApp } from './app.js';
import { isLoopback } from './loopback.js';
import { Metrics } from './metrics.js';
import { Readiness } from './readiness.js';
import { runtimeVersion } from './runtime-version.js';
import { SettingError } from './settings.js';
import type { ServiceSettings } from './settings.js';

export interface Service {
  readonly app: FastifyInstance;
  /** Resolves with the port, once it listens. @throws SettingError, or the system's error. */
  listen(): Promise<number>;
  /** Refuses what comes and what waits, finishes what runs, and leaves nothing. */
  stop(): Promise<void>;
}

/** Clients that are in the middle of a request when everything else is done are cut off after this. */
const LAST_BYTES_MS = 2000;

/** @throws SettingError when the runtime is not there. */
export async function createService(settings: ServiceSettings, log: Logger): Promise<Service> {
  // First: an executor may start sandboxes at once.
  const version = await runtimeVersion(settings);
  const executor = createExecutor({
    runtime: settings.runtime,
    command: settings.runtime === 'deno' ? settings.denoBin : process.execPath,
    isolation: settings.isolation,
    brokerUrl: settings.brokerUrl ?? undefined,
    warm: settings.warm,
  });
  const admission = new Admission(settings);
  const metrics = new Metrics(admission, () => executor.counts());
  const readiness = new Readiness(executor);
  const app = await createApp({ settings, executor, admission, metrics, readiness, log, runtimeVersion: version });
  return new OwnService({ settings, executor, admission, readiness, app, log });
}

interface Parts {
  settings: ServiceSettings;
  executor: Executor;
  admission: Admission;
  readiness: Readiness;
  app: FastifyInstance;
  log: Logger;
}

class OwnService implements Service {
  readonly app: FastifyInstance;
  readonly #parts: Parts;
  #stopping: Promise<void> | null = null;

  constructor(parts: Parts) {
    this.app = parts.app;
    this.#parts = parts;
  }

  async listen(): Promise<number> {
    const { settings, app, log, readiness } = this.#parts;
    const { host, port, token } = settings;
    await app.listen({ host, port });
    const addresses = app.addresses() as AddressInfo[];
    // A name may stand for anything: what counts is where it led.
    if (token === null && !addresses.every(({ address }) => isLoopback(address))) {
      await this.stop();
      throw new SettingError(`HOST is ${host}, which other machines may reach: set SANDBOX_TOKEN, or listen on 127.0.0.1`);
    }
    const [{ port: bound } = { port }] = addresses;
    log.info({ host, port: bound, ...outline(settings) }, `listening on :${bound}`);
    void this.#tryOut(readiness);
    return bound;
  }

  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop());
  }

  async #stop(): Promise<void> {
    const { admission, app, executor, log } = this.#parts;
    log.info({ running: admission.running, waiting: admission.waiting }, 'shutting down');
    admission.close();
    await admission.idle();
    const cutOff = setTimeout(() => app.server.closeAllConnections(), LAST_BYTES_MS);
    await app.close();
    clearTimeout(cutOff);
    await executor.close();
    log.info('stopped');
  }

  async #tryOut(readiness: Readiness): Promise<void> {
    const problem = await readiness.problem();
    if (problem !== null && this.#stopping === null) this.#parts.log.error({ outcome: problem }, 'a trial run failed: "ringfence doctor" says what this machine can do');
  }
}

function outline({ runtime, concurrency, queueLength, warm, page, isolation, token, brokerUrl }: ServiceSettings): object {
  return { runtime, concurrency, queueLength, warm, page, isolation, needToken: token !== null, brokerPinned: brokerUrl !== null };
}
