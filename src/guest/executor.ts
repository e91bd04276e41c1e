import { isNetworkFenceOff } from '../plan/network.js';
import { Host } from '../run/host.js';
import { runnerOf } from '../run/run.js';
import type { GuestAnswer } from './answer.js';
import { brokerProblem } from './broker.js';
import { checkExecutorOptions } from './executor-options.js';
import { GuestRun, refusal } from './guest-run.js';
import type { CompiledNetwork, GuestNetwork } from './network.js';
import { compileGuestNetwork, egressProblem } from './network.js';
import { checkRequest } from './request.js';
import type { CheckedRequest, GuestRequest } from './request.js';
import { findDeno } from './find-deno.js';
import { nodeRuntime } from './runtime.js';
import { rehearsalFor } from './rehearsal.js';
import type { Rehearsal, Runtime } from './runtime.js';
import { denoRuntime } from './runtime-deno.js';
import { WarmPool } from './pool.js';
import { RecentSandboxes } from './recent-sandboxes.js';
import { GuestSandbox } from './sandbox.js';
import type { Profile } from './sandbox.js';
import { TypeStripper } from './strip-types.js';

export interface ExecutorOptions {
  runtime: 'deno' | 'node';
  /** Absolute path of the runtime's program. Default: DENO_BIN, a `deno` in PATH or that of the npm package; this Node. */
  command?: string | undefined;
  /** As in `runSandboxed`. Default: `strict`. */
  isolation?: 'strict' | 'best-effort' | undefined;
  /** The only broker that requests may name. Default: SANDBOX_BROKER_URL; without either, any. */
  brokerUrl?: string | undefined;
  /**
   * Sandboxes to keep started for functions to come, for each of the two profiles (memory, network) used last; the first is
   * the default one. They cost memory and no processor time. Default: 0.
   */
  warm?: number | undefined;
  /** For the hosts that requests name: private ranges that are open, pinned addresses, limits. */
  network?: GuestNetwork | undefined;
}

/** What an executor has done and has, at one moment. */
export interface SandboxCounts {
  /** Sandboxes that exist, those that wait for a function included. */
  live: number;
  /** Functions so far that were given a sandbox that had been started before they came, and those that were not. */
  warmHits: number;
  coldStarts: number;
}

export interface Executor {
  /** Runs one function in a sandbox of its own. Never rejects. */
  run(request: GuestRequest): Promise<GuestAnswer>;
  /** Ends what runs, as canceled. Resolves when nothing is left. */
  close(): Promise<void>;
  counts(): SandboxCounts;
}

/**
 * Makes an executor, and starts its warm sandboxes. A process that has one does not end by itself before `close`.
 *
 * @throws TypeError when an option has the wrong type, is missing or is not known; RangeError when its value is wrong.
 */
export function createExecutor(options: ExecutorOptions): Executor {
  return new SandboxExecutor(checkExecutorOptions(options));
}

/** Beyond a function's own deadline, which is kept here. */
const BACKSTOP_MS = 1000;
/** One that waits has no deadline yet; setTimeout knows no longer time. */
const NEVER_MS = 2 ** 31 - 1;
const LEARN_MS = 10_000;
const DEFAULT_MEMORY_MB = 128;
const NO_NETWORK: CompiledNetwork = { network: 'none', net: [], import: [] };

class SandboxExecutor implements Executor {
  readonly #host = new Host();
  readonly #recent = new RecentSandboxes();
  readonly #runtime: Runtime;
  readonly #isolation: 'strict' | 'best-effort';
  readonly #brokerUrl: string | undefined;
  readonly #network: GuestNetwork;
  /** null where the runtime strips types itself. */
  readonly #stripper: TypeStripper | null;
  readonly #pool: WarmPool;
  readonly #counts: SandboxCounts = { live: 0, warmHits: 0, coldStarts: 0 };
  readonly #answers = new Set<Promise<GuestAnswer>>();
  readonly #closing = new AbortController();
  #learning: Promise<unknown> | null = null;

  constructor({ runtime, command, isolation = 'strict', brokerUrl, network = {}, warm = 0 }: ExecutorOptions) {
    this.#runtime = runtime === 'deno' ? denoRuntime(command ?? findDeno()) : nodeRuntime(command ?? process.execPath);
    this.#stripper = runtime === 'node' ? new TypeStripper() : null;
    this.#isolation = isolation;
    // An empty variable is an absent one.
    this.#brokerUrl = brokerUrl ?? (process.env['SANDBOX_BROKER_URL'] || undefined);
    this.#network = network;
    this.#pool = new WarmPool({ size: warm, start: (profile, rehearsal) => this.#start(profile, NEVER_MS, rehearsal) });
    this.#pool.keep(this.#profile(DEFAULT_MEMORY_MB, NO_NETWORK), 'plain');
    if (warm > 0) this.#stripper?.prepare();
  }

  async run(request: GuestRequest): Promise<GuestAnswer> {
    const answer = this.#run(request, performance.now());
    this.#answers.add(answer);
    try {
      return await answer;
    } finally {
      this.#answers.delete(answer);
    }
  }

  counts(): SandboxCounts {
    return { ...this.#counts };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#answers, this.#pool.close()]);
    await this.#stripper?.close();
  }

  async #run(input: GuestRequest, startedAt: number): Promise<GuestAnswer> {
    const request = checkRequest(input);
    if ('problem' in request) return refusal(startedAt, 'invalid-request', request.problem);
    const { bindings } = request;
    const problem = bindings.kind === 'broker' ? brokerProblem(bindings.url, this.#brokerUrl) : null;
    if (problem !== null) return refusal(startedAt, 'bindings-rejected', `bindings rejected: ${problem}`);
    if (this.#runtime.name === 'node' && request.import.length > 0) {
      return refusal(startedAt, 'invalid-request', 'capabilities.import must be empty: Node has no remote imports, use the deno runtime');
    }
    let network: CompiledNetwork;
    try {
      // With a broker the guest has no sockets of its own.
      network = await compileGuestNetwork(bindings.kind === 'broker' ? [] : request.net, request.import, this.#network);
    } catch (error) {
      return refusal(startedAt, 'egress-blocked', egressProblem(error));
    }
    this.#host.noteNetworkFence(network.network);
    if (this.#isolation === 'best-effort') await (this.#learning ??= this.#learn());
    return this.#dispatch(request, network, startedAt);
  }

  #dispatch(request: CheckedRequest, network: CompiledNetwork, startedAt: number): Promise<GuestAnswer> | GuestAnswer {
    if (this.#closing.signal.aborted) return refusal(startedAt, 'closed', 'the executor is closed');
    if (request.signal?.aborted === true) return refusal(startedAt, 'canceled', 'the run was canceled');
    const profile = this.#profile(request.memoryMb, network);
    const source = this.#stripper === null ? { code: request.source } : this.#stripper.strip(request.source);
    const warm = this.#pool.take(profile);
    this.#counts[warm === null ? 'coldStarts' : 'warmHits']++;
    const sandbox = warm ?? this.#start(profile, request.timeoutMs + BACKSTOP_MS, 'none');
    this.#pool.guestRuns(1);
    const run = new GuestRun({ request, source, sandbox, host: this.#host, startedAt });
    const unsubscribe = this.#host.aborts.subscribe(this.#closing.signal, () => run.cancel());
    this.#pool.keep(profile, rehearsalFor(request.source));
    return run.answer.finally(() => {
      unsubscribe();
      this.#pool.guestRuns(-1);
    });
  }

  /** What this machine cannot do: a function's channel depends on whether it has a network of its own. */
  #learn(): Promise<unknown> {
    return runnerOf(this.#host)({ command: '/bin/true', args: [], timeoutMs: LEARN_MS, isolation: 'best-effort' });
  }

  #profile(memoryMb: number, network: CompiledNetwork): Profile {
    return { memoryMb, sharesNetwork: isNetworkFenceOff(process.env) || this.#host.dropped.has('network'), ...network };
  }

  #start(profile: Profile, backstopMs: number, rehearse: Rehearsal): GuestSandbox {
    const sandbox = new GuestSandbox({
      host: this.#host,
      recent: this.#recent,
      runtime: this.#runtime,
      profile,
      isolation: this.#isolation,
      backstopMs,
      rehearse,
    });
    this.#counts.live++;
    void sandbox.result.finally(() => this.#counts.live--);
    return sandbox;
  }
}
