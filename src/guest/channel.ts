import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';

import { encodeFrame, FrameReader, KEY_BYTES, ProtocolError } from './frames.js';
import { parseGuestMessage, replyMessage, startMessage } from './messages.js';
import type { Envelope, GuestMessage, Reply } from './messages.js';

export const MAX_FRAME_BYTES = 2 * 1024 * 1024;
/** Logs, calls and the answer of any run that keeps to the rules are fewer. */
const MAX_MESSAGES = 110_000;
/** Beyond these the guest is not heard until it has read what it was told: its own pace bounds what is held for it. */
const MAX_UNANSWERED = 256;
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

export interface ChannelEvents {
  onMessage(message: Exclude<GuestMessage, { t: 'ready' }>): void;
  /** The other side broke the rules: nothing of it is heard any more. */
  onBroken(error: ProtocolError): void;
}

/**
 * The host's end of the one connection between host and sandbox. It is accepted before guest code exists, and its listener
 * is closed with it: nobody else comes in.
 */
export class Channel {
  /** Resolves when the sandbox is ready for its function. */
  readonly ready: Promise<void>;
  readonly #events: ChannelEvents;
  readonly #key = randomBytes(KEY_BYTES);
  readonly #reader = new FrameReader(this.#key, MAX_FRAME_BYTES);
  #server: Server | null = null;
  #socket: Socket | null = null;
  #first: Buffer | null = null;
  #messages = 0;
  #unanswered = 0;
  #closed = false;
  #onReady: () => void = () => undefined;

  constructor(events: ChannelEvents) {
    this.#events = events;
    this.ready = new Promise((resolve) => (this.#onReady = resolve));
  }

  /** Waits on a listening descriptor, which the channel owns from the call on. */
  listen(fd: number): void {
    const server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
    this.#server = server;
    // A listener that cannot be used shows as a run that times out.
    server.on('error', () => undefined);
    server.listen({ fd });
    if (this.#closed) server.close();
  }

  /** Hands the function over, as soon as there is a connection. */
  start(envelope: Envelope): void {
    this.#first = encodeFrame(startMessage(envelope));
    if (!this.#closed) this.#socket?.write(this.#first);
  }

  reply(id: number, reply: Reply): void {
    let text: string;
    try {
      text = replyMessage(id, reply);
    } catch {
      text = replyMessage(id, { ok: false, error: { code: 'bad_result', message: 'the result is not JSON' } });
    }
    if (Buffer.byteLength(text) > MAX_FRAME_BYTES) {
      text = replyMessage(id, { ok: false, error: { code: 'too_large', message: `the result has more than ${MAX_FRAME_BYTES} bytes` } });
    }
    this.#unanswered--;
    if (!this.#closed) this.#socket?.write(encodeFrame(text), () => this.#pace());
    this.#pace();
  }

  /** Idempotent. Nothing is heard afterwards. */
  close(): void {
    this.#closed = true;
    this.#server?.close();
    this.#socket?.destroy();
  }

  #pace(): void {
    const socket = this.#socket;
    if (socket === null || this.#closed) return;
    if (this.#unanswered >= MAX_UNANSWERED || socket.writableLength > MAX_UNREAD_BYTES) socket.pause();
    else if (socket.isPaused()) socket.resume();
  }

  #accept(socket: Socket): void {
    this.#server?.close();
    if (this.#socket !== null || this.#closed) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    // The guest decides when the connection breaks; the end of its sandbox is what counts.
    socket.on('error', () => undefined);
    socket.write(this.#first === null ? this.#key : Buffer.concat([this.#key, this.#first]));
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
  }

  #take(chunk: Buffer): void {
    if (this.#closed) return;
    try {
      for (const text of this.#reader.push(chunk)) {
        this.#hear(parseGuestMessage(text));
        if (this.#closed) return;
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.close();
      this.#events.onBroken(error);
    }
  }

  #hear(message: GuestMessage): void {
    if (++this.#messages > MAX_MESSAGES) throw new ProtocolError(`more than ${MAX_MESSAGES} messages`);
    if (message.t === 'ready') return this.#onReady();
    if (message.t === 'call') {
      this.#unanswered++;
      this.#pace();
    }
    this.#events.onMessage(message);
  }
}
