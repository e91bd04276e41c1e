import { Writable } from 'node:stream';

import { onTestFinished } from 'vitest';

import type { GuestAnswer } from '../../../src/guest/answer.js';
import { createLog } from '../../../src/service/log.js';
import { createService } from '../../../src/service/service.js';
import type { Service } from '../../../src/service/service.js';
import { readSettings } from '../../../src/service/settings.js';
import type { ServiceSettings } from '../../../src/service/settings.js';

export interface TestService extends Service {
  settings: ServiceSettings;
  /** Everything it has logged, line by line. */
  logged: string[];
}

export interface ListeningService extends TestService {
  url: string;
  port: number;
}

/** The service with a real executor, not listening; it stops with the test. */
export async function service(changes: Partial<ServiceSettings> = {}): Promise<TestService> {
  const settings = { ...readSettings({ PORT: '0', RINGFENCE_RUNTIME: 'node', PATH: process.env['PATH'] }), ...changes };
  const logged: string[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      logged.push(...chunk.toString().trim().split('\n'));
      done();
    },
  });
  const created = await createService(settings, createLog(settings.logLevel, sink));
  onTestFinished(() => created.stop());
  return { app: created.app, listen: () => created.listen(), stop: () => created.stop(), settings, logged };
}

/** The same, on a port of loopback. */
export async function listening(changes: Partial<ServiceSettings> = {}): Promise<ListeningService> {
  const created = await service(changes);
  const port = await created.listen();
  return { ...created, port, url: `http://127.0.0.1:${port}` };
}

/** A run's answer, from `POST /run` over HTTP. */
export async function post(url: string, body: object, init: RequestInit = {}): Promise<GuestAnswer> {
  const response = await fetch(`${url}/run`, { method: 'POST', body: JSON.stringify({ capabilities: {}, ...body }), ...init });
  if (response.status !== 200) throw new Error(`HTTP ${response.status}: ${await response.text()}`);
  return (await response.json()) as GuestAnswer;
}

/** The value of one series of `GET /metrics`; 0 when it is not there. */
export async function metric({ app }: Service, series: string): Promise<number> {
  const { payload } = await app.inject('/metrics');
  const line = payload.split('\n').find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length) ?? 0);
}

/** Asks again and again until it is so; the test's own timeout is the limit. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}
