import type { SandboxResult } from '../run/result.js';
import type { AnswerCode } from './answer.js';
import { cutText } from './cut-text.js';

export interface GuestFailure {
  code: AnswerCode;
  error: string;
}

const MAX_CHARACTERS = 4000;
/** What of a message is looked at. */
const MAX_READ = 64 * 1024;
/** It would run without a sandbox. */
const DENO_ADVICE = /, run again with the --allow-[a-z]+ flag/g;
const SOURCE_PLACE = / at (?:data|blob):[^\n]*/g;
/** The URL that the harness imports the function by; in Node it holds all of its source. */
const SOURCE_URL = /blob:null\/[\w-]+|data:text\/javascript,[\w.!~*'()%-]*/g;
/** V8 says so on standard error and aborts. */
const HEAP_EXHAUSTED = /heap out of memory|Fatal JavaScript out of memory/;

/**
 * A message of the guest's, without the harness's way of naming its source and without excerpts of it. The guest chooses the
 * text, and the event loop waits: no pattern may look at a character more than a few times.
 */
export function guestMessage(text: string): string {
  const lines = text.slice(0, MAX_READ).replace(SOURCE_PLACE, '').replace(SOURCE_URL, 'the function').replace(DENO_ADVICE, '').split('\n');
  return cutText(lines.filter((line) => !isOfSource(line)).join('\n').trim(), MAX_CHARACTERS);
}

/** A line of a stack, or one of an excerpt with its number. */
function isOfSource(line: string): boolean {
  const text = line.trimStart();
  return text.length < line.length ? /^(?:at\s|\d*\s*\|)/.test(text) : /^(?:\d+\s+\||at (?:data|blob):)/.test(text);
}

/** Why a sandbox ended before its function had answered. */
export function describeEnd(result: SandboxResult, memoryMb: number): GuestFailure {
  const { outcome, error, usage, exitCode, signal, stderr } = result;
  switch (outcome) {
    case 'spawn-error':
      return { code: error?.code ?? 'set-up-failed', error: `the sandbox could not be set up (${error?.code ?? 'set-up-failed'}): ${error?.hint ?? ''}` };
    case 'out-of-memory':
      return outOfMemory(memoryMb);
    case 'overflow-stdout':
    case 'overflow-stderr':
      return { code: 'output-limit', error: 'the function printed too much' };
    default:
      break;
  }
  if (signal !== null && HEAP_EXHAUSTED.test(stderr)) return outOfMemory(memoryMb);
  if ((usage.pidsRefused ?? 0) > 0) return { code: 'process-limit', error: 'the function reached its limit of processes and threads' };
  const how = signal === null ? `with exit code ${exitCode ?? 0}` : `of ${signal}`;
  return { code: 'guest-exit', error: `the function's process ended ${how} before it answered` };
}

function outOfMemory(memoryMb: number): GuestFailure {
  return { code: 'out-of-memory', error: `memory limit exceeded (${memoryMb} MiB)` };
}
