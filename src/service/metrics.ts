import { Counter, Gauge, Histogram, Registry } from 'prom-client';

import type { GuestAnswer, SandboxCounts } from '../index.js';
import type { Admission } from './admission.js';
import type { RefusalReason } from './refusal.js';

const SECONDS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30];

/** What the service tells Prometheus, in a registry of its own. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #runs = this.#counter('ringfence_runs_total', 'Runs by outcome: "ok", or the code of the failure.', ['outcome']);
  readonly #refusals = this.#counter('ringfence_refused_requests_total', 'Requests that no run came of, by reason.', ['reason']);
  readonly #connections = this.#counter('ringfence_connections_total', 'Connections that guests tried, by verdict.', ['verdict']);
  readonly #duration = this.#histogram('ringfence_run_duration_seconds', 'From the moment a run had its place to its answer.');
  readonly #queued = this.#histogram('ringfence_queue_duration_seconds', 'How long a run waited for its place.');

  constructor(admission: Admission, counts: () => SandboxCounts) {
    for (const verdict of ['allowed', 'refused']) this.#connections.inc({ verdict }, 0);
    this.#runs.inc({ outcome: 'ok' }, 0);
    this.#gauge('ringfence_running', 'Runs that have a place.', () => admission.running);
    this.#gauge('ringfence_queue_length', 'Requests that wait for a place.', () => admission.waiting);
    this.#gauge('ringfence_live_sandboxes', 'Sandboxes that exist, those kept ready included.', () => counts().live);
    this.#gauge('process_resident_memory_bytes', 'Resident memory of the service itself.', () => process.memoryUsage.rss());
    this.#total('ringfence_warm_hits_total', 'Runs that were given a sandbox that had been kept ready.', () => counts().warmHits);
    this.#total('ringfence_cold_starts_total', 'Runs that had to wait for a sandbox of their own.', () => counts().coldStarts);
  }

  ran(answer: GuestAnswer, queuedMs: number, heldMs: number): void {
    this.#runs.inc({ outcome: answer.ok ? 'ok' : (answer.code ?? 'unknown') });
    this.#queued.observe(queuedMs / 1000);
    this.#duration.observe(heldMs / 1000);
    for (const { verdict } of answer.connections) this.#connections.inc({ verdict });
  }

  refused(reason: RefusalReason): void {
    this.#refusals.inc({ reason });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #histogram(name: string, help: string): Histogram {
    return new Histogram({ name, help, buckets: SECONDS, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, read: () => number): void {
    new Gauge({ name, help, registers: [this.#registry], collect() { this.set(read()); } });
  }

  /** A counter that somebody else counts. */
  #total(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }
}
