import { nothingEnforced } from '../run/enforcement.js';
import type { Host } from '../run/host.js';
import type { SandboxResult } from '../run/result.js';
import type { AnswerCode, GuestAnswer } from './answer.js';
import { BrokerCallee } from './broker.js';
import type { Callee } from './calls.js';
import { FunctionCallee, nobody } from './calls.js';
import { describeEnd, guestMessage } from './errors.js';
import type { GuestFailure } from './errors.js';
import { Logs } from './logs.js';
import type { Envelope, GuestCall, GuestMessage, GuestOutcome } from './messages.js';
import type { CheckedRequest } from './request.js';
import type { GuestSandbox } from './sandbox.js';
import type { Stripped, Stripping } from './strip-types.js';

export interface RunInput {
  request: CheckedRequest;
  /** As the runtime takes it, or what is wrong with it. */
  source: Stripped | Stripping;
  sandbox: GuestSandbox;
  host: Host;
  /** `performance.now()` when the request came. */
  startedAt: number;
}

type Cause =
  | { kind: 'done'; outcome: GuestOutcome }
  | { kind: 'timeout' }
  | { kind: 'canceled' }
  | { kind: 'broken'; message: string };

/** One function, from its dispatch to its answer. */
export class GuestRun {
  /** Never rejects. */
  readonly answer: Promise<GuestAnswer>;
  readonly #input: RunInput;
  readonly #logs: Logs;
  readonly #callee: Callee;
  /** The first one counts. */
  #cause: Cause | null = null;

  constructor(input: RunInput) {
    const { request, source, sandbox, host, startedAt } = input;
    this.#input = input;
    this.#logs = new Logs(request.onLog);
    this.#callee = calleeOf(request);
    const left = request.timeoutMs - (performance.now() - startedAt);
    // After a block of the event loop the timers come first: what the guest said meanwhile must be heard before.
    const timer = setTimeout(() => setImmediate(() => this.#end({ kind: 'timeout' })), left);
    const unsubscribe = request.signal === null ? () => undefined : host.aborts.subscribe(request.signal, () => this.cancel());
    if ('done' in source) void source.done.then((stripped) => this.#dispatch(stripped));
    else this.#dispatch(source);
    this.answer = sandbox.result.then((result) => {
      clearTimeout(timer);
      unsubscribe();
      this.#leave();
      return this.#answerOf(result);
    });
  }

  cancel(): void {
    this.#end({ kind: 'canceled' });
  }

  #dispatch(source: Stripped): void {
    if (this.#cause !== null) return;
    if ('problem' in source) return this.#end({ kind: 'done', outcome: { t: 'failure', error: source.problem } });
    this.#input.sandbox.dispatch(envelopeOf(this.#input.request, source.code), {
      onMessage: (message) => this.#hear(message),
      onBroken: (error) => this.#end({ kind: 'broken', message: error.message }),
    });
  }

  #end(cause: Cause): void {
    if (this.#cause !== null) return;
    this.#cause = cause;
    this.#leave();
    if (cause.kind === 'done' || cause.kind === 'broken') this.#input.sandbox.finish();
    else this.#input.sandbox.stop();
  }

  /** Ends what the host does for the function. */
  #leave(): void {
    const { source } = this.#input;
    if ('cancel' in source) source.cancel();
    this.#callee.close();
  }

  #hear(message: Exclude<GuestMessage, { t: 'ready' }>): void {
    if (this.#cause !== null) return;
    switch (message.t) {
      case 'log':
        return this.#logs.add(message.text);
      case 'call':
        return void this.#answerCall(message);
      case 'result':
      case 'failure':
        return this.#end({ kind: 'done', outcome: message });
    }
  }

  async #answerCall({ id, method, args }: GuestCall): Promise<void> {
    const reply = await this.#callee.answer(method, args);
    if (this.#cause === null) this.#input.sandbox.reply(id, reply);
  }

  #answerOf(result: SandboxResult): GuestAnswer {
    const { enforcement, connections } = result;
    const sinceRequest = performance.now() - this.#input.startedAt;
    // A sandbox that was started ahead has waited, which is not this function's time.
    const usage = { ...result.usage, wallMs: Math.min(result.usage.wallMs, Math.round(sinceRequest * 1000) / 1000) };
    const rest = { logs: this.#logs.lines, ms: Math.round(sinceRequest), usage, enforcement, connections: [...connections] };
    const outcome = this.#cause?.kind === 'done' ? this.#cause.outcome : null;
    if (outcome?.t === 'result') return { ok: true, ...(outcome.output === undefined ? {} : { output: outcome.output }), ...rest };
    const failure = this.#failureOf(result);
    return { ok: false, ...failure, ...(failure.code === 'timeout' ? { timedOut: true } : {}), ...rest };
  }

  #failureOf(result: SandboxResult): GuestFailure {
    const { timeoutMs, memoryMb } = this.#input.request;
    const cause = this.#cause;
    switch (cause?.kind) {
      case 'done':
        return { code: 'guest-error', error: cause.outcome.t === 'failure' ? guestMessage(cause.outcome.error) : '' };
      case 'timeout':
        return wallTimeExceeded(timeoutMs);
      case 'canceled':
        return { code: 'canceled', error: 'the run was canceled' };
      case 'broken':
        return { code: 'protocol', error: `the function broke the protocol: ${cause.message}` };
      case undefined:
        // By the launcher, where this process was too busy to do it.
        return result.outcome === 'timeout' ? wallTimeExceeded(timeoutMs) : describeEnd(result, memoryMb);
    }
  }
}

function wallTimeExceeded(timeoutMs: number): GuestFailure {
  return { code: 'timeout', error: `wall-time exceeded (${timeoutMs}ms)` };
}

function calleeOf({ bindings }: CheckedRequest): Callee {
  switch (bindings.kind) {
    case 'none':
      return nobody;
    case 'functions':
      return new FunctionCallee(bindings.functions);
    case 'broker':
      return new BrokerCallee(bindings);
  }
}

function envelopeOf({ input, secrets, bindings }: CheckedRequest, source: string): Envelope {
  return { source, input, secrets, bindings: bindings.kind === 'functions' ? Object.keys(bindings.functions) : bindings.kind };
}

/** The answer where nothing was started. */
export function refusal(startedAt: number, code: AnswerCode, error: string): GuestAnswer {
  const unknown = { cpuUserMs: null, cpuSystemMs: null, peakMemoryBytes: null, peakPids: null, oomKills: null, pidsRefused: null };
  return {
    ok: false,
    code,
    error,
    logs: [],
    ms: Math.round(performance.now() - startedAt),
    usage: { wallMs: 0, ...unknown },
    enforcement: nothingEnforced('nothing was started'),
    connections: [],
  };
}
