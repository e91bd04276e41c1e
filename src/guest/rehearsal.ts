import type { Rehearsal } from './runtime.js';

/** A longer source is not searched on the event loop. */
const MAX_SEARCHED = 16 * 1024;

/** What may use what Deno has from Node, its timers among them: Deno takes 9 ms to load that. */
const USES_NODE = /\b(?:import|require|process|Buffer|global|(?:set|clear)(?:Timeout|Interval|Immediate))\b/;

/** What new sandboxes rehearse: functions like the last one are to come. */
export function rehearsalFor(source: string): Rehearsal {
  return source.length > MAX_SEARCHED || USES_NODE.test(source) ? 'node' : 'plain';
}
