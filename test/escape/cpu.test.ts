import { expect } from 'vitest';

import { attack, attackClass } from './support/attack.js';
import type { Attempt } from './support/attack.js';
import { withOptions } from './support/controls.js';

const usedMs = ({ result }: Attempt): number => (result?.usage.cpuUserMs ?? 0) + (result?.usage.cpuSystemMs ?? 0);

attackClass({ name: 'cpu limits', program: 'quotas.c', flags: ['-pthread'], besideFilter: true }, [
  attack({
    title: 'Many busy processes share one quota',
    guest: (lab) => lab.attack('burn', '8', '3000'),
    options: () => ({ limits: { cpus: 0.05 } }),
    // A twentieth, with room for late ticks and for what the start takes; without the quota it is what a busy machine has left.
    escaped: (attempt) => usedMs(attempt) > 50 + 0.1 * (attempt.result?.usage.wallMs ?? 0),
    control: withOptions('a quota of two processors', () => ({ limits: { cpus: 2 } })),
  }),
  attack({
    title: 'Processor time is counted over all processes, and no signal that a guest ignores has to end it',
    guest: (lab) => lab.attack('burn', '4', '20000'),
    options: () => ({ limits: { cpuTimeMs: 300 }, timeoutMs: 15_000, gracePeriodMs: 100 }),
    outcomes: ['cpu-limit'],
    escaped: (attempt) => attempt.result?.outcome !== 'cpu-limit' && usedMs(attempt) > 300,
    check: (attempt) => expect(usedMs(attempt)).toBeGreaterThanOrEqual(300),
    control: withOptions('a limit of a minute', () => ({ limits: { cpuTimeMs: 60_000 }, timeoutMs: 3000 })),
  }),
]);
