import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

import { encodeFrame, FrameReader, KEY_BYTES, ProtocolError } from './frames.js';
import { parseGuestMessage, replyMessage, startMessage } from './messages.js';
import type { Envelope, GuestMessage, Reply } from './messages.js';

export const MAX_FRAME_BYTES = 2 * 1024 * 1024;
/** Logs, calls and the answer of any run that keeps to the rules are fewer. */
const MAX_MESSAGES = 110_000;
/** Beyond these the guest is not heard until it has read what it was told: its own pace bounds what is held for it. */
const MAX_UNANSWERED = 256;
const MAX_UNANSWERED_CHARACTERS = 4 * 1024 * 1024;
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;
/** Heard in one turn of the event loop, which others wait for. */
const MESSAGES_AT_A_TIME = 16;
const CHARACTERS_AT_A_TIME = 64 * 1024;
/** A stranger's connection lasts no longer, and so many wait at most. */
const PASSWORD_MS = 5000;
const MAX_STRANGERS = 256;

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
  #soon: NodeJS.Immediate | null = null;
  #messages = 0;
  /** Of each call that is not answered, its length. */
  readonly #unanswered = new Map<number, number>();
  #unansweredCharacters = 0;
  /** What has come and is not heard yet. */
  #texts: Iterator<string> | null = null;
  readonly #strangers = new Set<Socket>();
  #closed = false;
  #onReady: () => void = () => undefined;

  constructor(events: ChannelEvents) {
    this.#events = events;
    this.ready = new Promise((resolve) => (this.#onReady = resolve));
  }

  /** Waits on a listening descriptor of the sandbox's own network, which the channel owns from the call on. */
  listen(fd: number): void {
    const server = this.#serve((socket) => this.#accept(socket));
    server.listen({ fd });
  }

  /**
   * Waits on the loopback of this machine, where anyone may come: for whoever says the password first. Resolves with the
   * port.
   */
  async listenAmongOthers(password: Buffer): Promise<number> {
    const server = this.#serve((socket) => {
      // Whoever comes may go again at any moment.
      this.#admit(socket, password).catch(() => undefined).finally(() => {
        this.#strangers.delete(socket);
        if (socket !== this.#socket) socket.destroy();
      });
    });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  }

  /** Hands the function over, as soon as there is a connection. */
  start(envelope: Envelope): void {
    this.#first = encodeFrame(startMessage(envelope));
    if (!this.#closed) this.#socket?.write(this.#first);
  }

  reply(id: number, reply: Reply): void {
    this.#unansweredCharacters -= this.#unanswered.get(id) ?? 0;
    this.#unanswered.delete(id);
    if (!this.#closed) this.#socket?.write(encodeFrame(textOf(id, reply)), () => this.#pace());
    this.#pace();
  }

  /** Idempotent. Nothing is heard afterwards. */
  close(): void {
    this.#closed = true;
    this.#server?.close();
    this.#socket?.destroy();
    for (const stranger of this.#strangers) stranger.destroy();
  }

  #serve(onConnection: (socket: Socket) => void): Server {
    const server = createServer({ noDelay: true }, onConnection);
    this.#server = server;
    // A listener that cannot be used shows as a run that times out.
    server.on('error', () => undefined);
    return server;
  }

  async #admit(socket: Socket, password: Buffer): Promise<void> {
    socket.on('error', () => undefined);
    if (this.#strangers.size >= MAX_STRANGERS) return;
    this.#strangers.add(socket);
    socket.setTimeout(PASSWORD_MS, () => socket.destroy());
    let said = Buffer.alloc(0);
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      said = Buffer.concat([said, chunk as Buffer]);
      if (said.length >= password.length) break;
    }
    if (said.length !== password.length || !timingSafeEqual(said, password)) return;
    socket.setTimeout(0);
    this.#accept(socket);
  }

  #accept(socket: Socket): void {
    this.#server?.close();
    if (this.#socket !== null || this.#closed) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    for (const stranger of this.#strangers) if (stranger !== socket) stranger.destroy();
    // The guest decides when the connection breaks; the end of its sandbox is what counts.
    socket.on('error', () => undefined);
    socket.write(this.#first === null ? this.#key : Buffer.concat([this.#key, this.#first]));
    socket.on('data', (chunk: Buffer) => {
      this.#texts = this.#reader.push(chunk);
      this.#listen();
    });
  }

  #pace(): void {
    if (this.#socket === null || this.#closed || this.#isBehind()) return;
    if (this.#texts !== null) this.#listenSoon();
    else if (this.#socket.isPaused()) this.#socket.resume();
  }

  /** True while the guest has to wait for answers, or to read them. */
  #isBehind(): boolean {
    const unread = this.#socket?.writableLength ?? 0;
    return this.#unanswered.size >= MAX_UNANSWERED || this.#unansweredCharacters >= MAX_UNANSWERED_CHARACTERS || unread > MAX_UNREAD_BYTES;
  }

  #listenSoon(): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = null;
      this.#listen();
    });
  }

  /** Hears some of what has come. Nothing more comes before all of it is heard. */
  #listen(): void {
    let characters = 0;
    try {
      for (let messages = 0; messages < MESSAGES_AT_A_TIME && characters < CHARACTERS_AT_A_TIME; messages++) {
        if (this.#closed || this.#texts === null || this.#isBehind()) break;
        const { done, value } = this.#texts.next();
        if (done === true) this.#texts = null;
        else this.#hear(value);
        characters += done === true ? 0 : value.length;
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.close();
      this.#events.onBroken(error);
    }
    if (this.#texts !== null || this.#isBehind()) this.#socket?.pause();
    this.#pace();
  }

  #hear(text: string): void {
    if (++this.#messages > MAX_MESSAGES) throw new ProtocolError(`more than ${MAX_MESSAGES} messages`);
    const message = parseGuestMessage(text);
    if (message.t === 'ready') return this.#onReady();
    if (message.t === 'call') {
      if (this.#unanswered.has(message.id)) throw new ProtocolError('a call by the id of one that is not answered yet');
      this.#unansweredCharacters += text.length;
      this.#unanswered.set(message.id, text.length);
    }
    this.#events.onMessage(message);
  }
}

function textOf(id: number, reply: Reply): string {
  try {
    const text = replyMessage(id, reply);
    if (Buffer.byteLength(text) <= MAX_FRAME_BYTES) return text;
    return replyMessage(id, { ok: false, error: { code: 'too_large', message: `the result has more than ${MAX_FRAME_BYTES} bytes` } });
  } catch {
    return replyMessage(id, { ok: false, error: { code: 'bad_result', message: 'the result is not JSON' } });
  }
}
