import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

import { onTestFinished } from 'vitest';

import type { Plan } from '../../src/plan/plan.js';
import { requiresLandlock } from './support/alone.js';
import { attack, attackClass } from './support/attack.js';
import type { Guest, Options } from './support/attack.js';
import { withPlan } from './support/controls.js';
import { launchPlan } from './support/launch-plan.js';
import { randomWord } from './support/lab.js';
import type { Lab } from './support/lab.js';

/** The first wall, and with it the filter, is down already: the plan's Landlock is all there is. */
function behind(change: (plan: Plan) => void) {
  const opened = (plan: Plan) => {
    change(plan);
    plan.filter = 'none';
  };
  return {
    filterOnly: true, // made once
    requires: requiresLandlock,
    inside: (guest: Guest, options: Options, _ground: unknown, lab: Lab) =>
      launchPlan({ ...options, ...guest, filesystem: { read: [lab.program] } }, opened),
    control: withPlan<unknown>('Landlock too', (plan) => {
      opened(plan);
      plan.landlock = null;
    }),
  };
}

const withoutNetwork = behind((plan) => {
  plan.namespaces.network = false;
});

attackClass({ name: 'the second wall', program: 'alone.c' }, [
  attack({
    title: 'Without a network namespace no service of the host can be connected to by TCP',
    async ground() {
      const server = createServer((socket) => socket.end());
      onTestFinished(() => void server.close());
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return (server.address() as AddressInfo).port;
    },
    guest: (lab, port) => lab.attack('connect-tcp', String(port)),
    ...withoutNetwork,
  }),
  attack({
    title: 'Without a network namespace no abstract socket of the host can be connected to',
    async ground(lab) {
      const name = randomWord();
      await lab.start(lab.program, ['listen-abstract', name]);
      return name;
    },
    guest: (lab, name) => lab.attack('connect-abstract', name),
    ...withoutNetwork,
  }),
  attack({
    title: 'Process 1, of the same account, cannot be signalled',
    guest: (lab) => lab.attack('send-signal', '1'),
    ...behind(() => undefined),
  }),
]);
