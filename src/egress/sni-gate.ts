import type { Gate } from './relay.js';
import { OpeningReader } from './sni.js';

/** Lets TLS through only to the name that was dialled; whatever is not TLS has no name to compare. */
export function sniGate(name: string): Gate {
  const reader = new OpeningReader();
  return {
    unfinished: 'the TLS ClientHello ends half-way',
    push(chunk) {
      const opening = reader.push(chunk);
      switch (opening.kind) {
        case 'more':
          return 'hold';
        case 'not-tls':
          return 'pass';
        case 'malformed':
          return { refuse: `malformed TLS ClientHello: ${opening.reason}` };
        case 'tls':
          if (opening.serverName === name) return 'pass';
          return { refuse: opening.serverName === null ? 'TLS without a server name' : `TLS server name "${opening.serverName}" is not "${name}"` };
      }
    },
  };
}
