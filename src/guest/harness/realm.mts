/**
 * The guest's side, in the guest's own realm: what runs there before the function does, and around it. Nothing in here is
 * secret or trusted. It takes hold of every built-in that it needs before guest code can replace one.
 */

import { Calls, offerBindings, setGlobal } from './bindings.mjs';
import type { Bindings, Reply } from './bindings.mjs';
import { removeThreads } from './threads.mjs';

/** The runtime's part. */
export interface Surroundings {
  /** Hands one message on. The text is JSON. */
  send(text: string): void;
  /** Values as the runtime's console would print them. */
  format(values: unknown[]): string;
  /** Evaluates a module; resolves with its namespace. */
  load(source: string): Promise<object>;
}

interface Start {
  t: 'start';
  source: string;
  input?: unknown;
  secrets: Record<string, string>;
  bindings: Bindings;
}

const MAX_LINES = 1000;
const MAX_CHARACTERS = 4000;
const LEVELS = ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir', 'table', 'group', 'groupCollapsed'] as const;
const SILENT = ['assert', 'clear', 'count', 'countReset', 'dirxml', 'groupEnd', 'time', 'timeEnd', 'timeLog', 'timeStamp', 'profile', 'profileEnd'];

const { apply } = Reflect;
const { freeze } = Object;
const { parse, stringify } = JSON;
const text = String;
const slice = String.prototype.slice;
const OwnError = Error;

export interface Harness {
  /** Takes the host's messages. */
  receive(message: string): void;
  /** Goes through all that a run does, with a function of no consequence, which needs timers or not. */
  rehearse(timers: boolean): Promise<void>;
}

/** Prepares the realm. */
export function prepare(surroundings: Surroundings): Harness {
  const { send } = surroundings;
  removeThreads();
  replaceConsole(surroundings);
  const calls = new Calls(send);
  let started = false;
  return {
    receive(message) {
      const parsed = parse(message) as Start | Reply;
      if (parsed.t === 'reply') return calls.settle(parsed);
      if (started) return;
      started = true;
      offerBindings(parsed.bindings, calls);
      setGlobal('__secrets', freeze(parsed.secrets));
      void run(parsed, surroundings);
    },
    async rehearse(timers) {
      const source = `export default (input) => ${timers ? 'setTimeout(() => {}, 0) && ' : ''}input;`;
      const start: Start = { t: 'start', source, input: {}, secrets: {}, bindings: 'none' };
      await run(start, { ...surroundings, send: () => undefined });
      surroundings.format([start]);
    },
  };
}

/** Reports what ended the run outside the function's own promise. */
export function fail(send: Surroundings['send'], error: unknown): void {
  send(`{"t":"failure","error":${stringify(messageOf(error))}}`);
}

async function run({ source, input }: Start, { send, load }: Surroundings): Promise<void> {
  try {
    const { default: entry } = (await load(source)) as { default?: unknown };
    if (typeof entry !== 'function') throw new OwnError('the source must `export default` a function');
    const output: unknown = await apply(entry, undefined, [input]);
    send(`{"t":"result"${outputMember(output)}}`);
  } catch (error) {
    fail(send, error);
  }
}

function outputMember(output: unknown): string {
  if (output === undefined) return '';
  let json: string | undefined;
  try {
    json = stringify(output);
  } catch (error) {
    throw new OwnError(`the result is not JSON: ${messageOf(error)}`);
  }
  if (json === undefined) throw new OwnError(`the result is not JSON: a ${typeof output}`);
  return `,"output":${json}`;
}

function messageOf(error: unknown): string {
  try {
    if (typeof error === 'object' && error !== null) {
      const { message, name } = error as { message?: unknown; name?: unknown };
      if (typeof message === 'string' && message !== '') return message;
      if (typeof name === 'string' && name !== '') return name;
    }
    return text(error);
  } catch {
    return 'an error that cannot be shown';
  }
}

function replaceConsole({ send, format }: Surroundings): void {
  let lines = 0;
  const target = console as unknown as Record<string, unknown>;
  const write = (level: string, values: unknown[]): void => {
    if (lines >= MAX_LINES) return;
    lines++;
    let line: string;
    try {
      line = format(values);
    } catch {
      line = 'a value that cannot be shown';
    }
    send(`{"t":"log","text":${stringify(apply(slice, `${level}: ${line}`, [0, MAX_CHARACTERS]))}}`);
  };
  for (const level of LEVELS) target[level] = (...values: unknown[]) => write(level, values);
  for (const name of SILENT) target[name] = () => undefined;
  target['assert'] = (condition: unknown, ...values: unknown[]) => {
    if (condition !== true && !condition) write('error', ['Assertion failed', ...values]);
  };
}
