import type { Service } from '../plan/plan-run.js';
import type { RunOptions } from './options.js';

/** Whoever serves a run from outside while it lasts: its channel, its deadline, its end. */
export interface Attendant extends Service {
  /** Called once for each launch, before anything else. */
  onLaunch(control: RunControl): void;
  /** The listener on `port` of the sandbox's loopback, before guest code runs. The descriptor is the attendant's. */
  onListener(descriptor: number): void;
}

/** What an attendant can do to its run, besides aborting it by its signal. */
export interface RunControl {
  /** At once: the run has done what it was for, and ends as `exit`. */
  finish(): void;
}

/** With an allowlist: two for DNS, and the two that see packets. */
const BEFORE_LISTENERS = 4;

/** Gives an attendant its listener out of the launcher's sockets (native/shared/protocol.h), and gives back the others. */
export function takeListener(descriptors: readonly number[], network: RunOptions['network'], attendant: Attendant): number[] {
  // In the order of the plan's ports, which is ascending.
  const index = typeof network === 'string' ? 0 : BEFORE_LISTENERS + network.ports.ipv4.filter((port) => port < attendant.port).length;
  const own = descriptors[index];
  if (own !== undefined) attendant.onListener(own);
  return descriptors.filter((descriptor) => descriptor !== own);
}
