/** The ways to take one fence down. */
import type { Attempt, Control, Guest, Options } from './attack.js';
import type { Lab } from './lab.js';
import { launchPlan } from './launch-plan.js';
import type { Plan } from '../../../src/plan/plan.js';
import type { OutsideOptions } from '../../support/outside.js';

/** No sandbox at all. Not for what would harm this machine. */
export function outside<Ground>(options: (ground: Ground) => OutsideOptions = () => ({})): Control<Ground> {
  return { down: 'outside any sandbox', run: (guest, _options, ground, lab) => lab.outside(guest, options(ground)) };
}

/** The same sandbox with other options: a grant, a higher limit, the host's network. */
export function withOptions<Ground>(down: string, change: (ground: Ground) => Options): Control<Ground> {
  return { down, run: (guest, options, ground, lab) => lab.sandbox(guest, merge(options, change(ground))) };
}

/** The same program in the same sandbox, aimed at something of its own. */
export function aimedAt<Ground>(down: string, guest: (lab: Lab, ground: Ground) => Guest): Control<Ground> {
  return { down, run: (_guest, options, ground, lab) => lab.sandbox(guest(lab, ground), options) };
}

/** The same plan with one thing changed, given to the launcher as it is. */
export function withPlan<Ground>(down: string, change: (plan: Plan, ground: Ground) => void): Control<Ground> {
  return {
    down,
    run: (guest, options, ground, lab) =>
      launchPlan(
        { ...options, ...guest, filesystem: { ...options.filesystem, read: [...(options.filesystem?.read ?? []), lab.program] } },
        (plan) => change(plan, ground),
      ),
  };
}

/**
 * Every capability over new user, mount, pid, network, ipc and uts namespaces, and no other fence. What is done there
 * is gone with them.
 */
export function withCapabilities<Ground>(): Control<Ground> {
  return {
    down: 'in namespaces of its own, with every capability over them',
    run: (guest, _options, _ground, lab) => inNamespaces(lab, guest),
  };
}

/** As `withCapabilities`, with the program aimed at something that the script has made first. */
export function afterScript<Ground>(script: (ground: Ground, lab: Lab) => string, guest?: (lab: Lab, ground: Ground) => Guest): Control<Ground> {
  return {
    down: 'in namespaces of its own, with every capability over them and the target made by a script',
    run: (given, _options, ground, lab) => {
      const { command, args } = guest?.(lab, ground) ?? given;
      return inNamespaces(lab, { command: 'sh', args: ['-c', `${script(ground, lab)}\nexec "$0" "$@"`, command, ...args] });
    },
  };
}

function inNamespaces(lab: Lab, { command, args }: Guest): Promise<Attempt> {
  const namespaces = ['--user', '--map-root-user', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--net', '--ipc', '--uts'];
  return lab.outside({ command: 'unshare', args: [...namespaces, '--', command, ...args] });
}

function merge(options: Options, change: Options): Options {
  return {
    ...options,
    ...change,
    filesystem: { ...options.filesystem, ...change.filesystem },
    limits: { ...options.limits, ...change.limits },
  };
}
