import type { Socket } from 'node:net';

import { GrowingBuffer } from '../growing-buffer.js';

/** Looks at the guest's bytes before any of them goes on. */
export interface Gate {
  /** `hold`: keep what came so far and show the next bytes too. A refusal ends the connection. */
  push(chunk: Buffer): 'hold' | 'pass' | { refuse: string };
  /** The guest sends no more while its bytes are held: why that is refused. */
  unfinished: string;
}

const NOTHING = Buffer.alloc(0);

/** So many idle times may go by while bytes wait for a reader, before its connection is idle. */
const MOST_SLOW = 8;

/** What is left of `maxBytes`, shared by all connections of a run. */
export interface ByteBudget {
  left: number;
}

/** Of the run that connections belong to, shared by all of them. */
export interface RunState {
  /** Ended from outside: what the guest's sockets do from now on, its killed processes' kernel does. */
  ending: boolean;
}

export const RUN_ENDED = 'the run ended';
/** Why a connection was ended while bytes of a guest that is gone still waited. */
export const NOT_TAKEN = 'the guest ended, and the server took no more';

export interface RelayOptions {
  /** Null: the guest's bytes go on as they come. */
  gate: Gate | null;
  budget: ByteBudget;
  run: RunState;
  idleTimeoutMs: number;
}

export interface RelayResult {
  /** The first thing that ended it, in a few words. */
  reason: string;
  /** Ended by the gate. */
  refused: boolean;
  /** From the guest to the server, as far as they were passed on. */
  bytesSent: number;
  bytesReceived: number;
}

/**
 * Joins the guest's socket and the server's. Both must be connected, with allowHalfOpen, and not read by anyone else. Each
 * direction has its own back-pressure and ends on its own; a reset on one side becomes a reset on the other.
 */
export class Relay {
  /** Resolves when both sockets are closed; never rejects. */
  readonly done: Promise<RelayResult>;
  readonly #guest: Socket;
  readonly #server: Socket;
  readonly #options: RelayOptions;
  readonly #idle: NodeJS.Timeout;
  #held: GrowingBuffer | null = null;
  #gate: Gate | null;
  #guestGone = false;
  /** Idle times that went by since a byte moved. */
  #idleTimes = 0;
  #reason: string | null = null;
  #refused = false;
  #bytesSent = 0;
  #bytesReceived = 0;

  constructor(guest: Socket, server: Socket, options: RelayOptions) {
    this.#guest = guest;
    this.#server = server;
    this.#options = options;
    this.#gate = options.gate;
    this.#idle = setTimeout(() => this.#onIdle(), options.idleTimeoutMs);
    this.done = Promise.all([closed(guest), closed(server)]).then(() => {
      clearTimeout(this.#idle);
      return { reason: this.#reason ?? 'closed', refused: this.#refused, bytesSent: this.#bytesSent, bytesReceived: this.#bytesReceived };
    });
    this.#watch(guest, server, 'the guest');
    this.#watch(server, guest, 'the server');
    this.#pump(guest, server, (chunk) => this.#fromGuest(chunk));
    this.#pump(server, guest, (chunk) => this.#pass(chunk, 'received'));
    guest.resume();
    server.resume();
    // Its events are over, so that nothing would end the other one.
    if (guest.destroyed || server.destroyed) this.stop(guest.destroyed && options.run.ending ? RUN_ENDED : 'closed before it began');
  }

  /** Bytes of the guest's that the kernel has taken for the server. It takes more in large steps. */
  get delivered(): number {
    return this.#server.bytesWritten - this.waiting;
  }

  /** Bytes of the guest's that it has not taken yet. */
  get waiting(): number {
    return this.#server.writableLength;
  }

  /** Ends both sides with a reset. The first reason is kept. */
  stop(reason: string): void {
    this.#reason ??= reason;
    reset(this.#guest);
    reset(this.#server);
  }

  /** The guest's process is gone: what it sent is still delivered, what comes back interests no one. */
  guestGone(): void {
    this.#guestGone = true;
    this.#endWhenDelivered();
  }

  #watch(from: Socket, to: Socket, who: string): void {
    from.on('error', (error: NodeJS.ErrnoException) => {
      this.#reason ??= from === this.#guest && this.#options.run.ending ? RUN_ENDED : failure(error, who);
      reset(to);
    });
    from.on('close', () => {
      // Closed without an end or an error of its own: nothing can follow in either direction.
      if (!from.readableEnded || !from.writableFinished) reset(to);
    });
  }

  /**
   * What a slow reader takes out of the kernel's buffers, megabytes of them, does not show here: while bytes wait for one the
   * connection is not idle yet, and where the kernel has all of them and the end, it is left to deliver that. Whatever is cut
   * short ends with a reset.
   */
  #onIdle(): void {
    this.#idleTimes += 1;
    const waiting = this.#guest.writableLength + this.#server.writableLength > 0;
    if (waiting && this.#idleTimes < MOST_SLOW) {
      this.#idle.refresh();
      return;
    }
    this.#reason ??= `idle for ${this.#options.idleTimeoutMs * this.#idleTimes} ms`;
    for (const side of [this.#guest, this.#server]) {
      if (side.writableFinished) side.destroy();
      else reset(side);
    }
  }

  /** A byte has moved. */
  #moved(): void {
    this.#idleTimes = 0;
    this.#idle.refresh();
  }

  #pump(from: Socket, to: Socket, take: (chunk: Buffer) => boolean): void {
    from.on('data', (chunk: Buffer) => {
      this.#moved();
      if (take(chunk)) return;
      from.pause();
    });
    to.on('drain', () => {
      this.#moved();
      from.resume();
    });
    from.on('end', () => {
      if (from === this.#guest && this.#held !== null) this.#refuse(this.#gate?.unfinished ?? '');
      else sureEnd(from, () => !to.destroyed && to.end(() => this.#endWhenDelivered()));
    });
  }

  #fromGuest(chunk: Buffer): boolean {
    if (!this.#gate) return this.#pass(chunk, 'sent');
    const verdict = this.#gate.push(chunk);
    this.#held ??= new GrowingBuffer();
    this.#held.append(chunk);
    if (verdict === 'hold') return true;
    if (verdict !== 'pass') {
      this.#refuse(verdict.refuse);
      return true;
    }
    const held = this.#held.bytes();
    this.#gate = null;
    this.#held = null;
    return this.#pass(held, 'sent');
  }

  /** False when the receiver should be given time. */
  #pass(chunk: Buffer, direction: 'sent' | 'received'): boolean {
    const to = direction === 'sent' ? this.#server : this.#guest;
    if (to.destroyed || this.#reason !== null) return true;
    if (chunk.length > this.#options.budget.left) {
      this.#options.budget.left = 0;
      this.stop('byte limit of the run reached');
      return true;
    }
    this.#options.budget.left -= chunk.length;
    if (direction === 'sent') this.#bytesSent += chunk.length;
    else this.#bytesReceived += chunk.length;
    return to.write(chunk);
  }

  #refuse(reason: string): void {
    this.#refused = this.#reason === null;
    this.#held = null;
    this.stop(reason);
  }

  #endWhenDelivered(): void {
    if (this.#guestGone && this.#guest.readableEnded && this.#server.writableFinished) {
      this.#guest.destroy();
      this.#server.destroy();
    }
  }
}

/**
 * Ends a socket with RST. A shutdown under way cannot be turned into one (libuv: EINVAL); it is closed then. None is under way
 * while bytes wait: a close would let them go and tell the reader that it has everything.
 */
export function reset(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.writableEnded && !socket.writableFinished && socket.writableLength === 0) socket.destroy();
  else socket.resetAndDestroy();
}

function failure({ code, message }: NodeJS.ErrnoException, who: string): string {
  return code === 'ECONNRESET' || code === 'EPIPE' ? `reset by ${who}` : `${code ?? message} at ${who}`;
}

/**
 * Calls back unless the end that was told is a reset: libuv takes a hangup behind the last bytes for an end. A write fails then,
 * one that waits already or one of nothing; where our own end has gone out none can be tried.
 */
function sureEnd(socket: Socket, sure: () => void): void {
  if (socket.writableLength > 0) setImmediate(sure);
  else if (socket.writable) socket.write(NOTHING, (error) => error ?? sure());
  else sure();
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}
