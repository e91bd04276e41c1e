// What the default policy becomes for guests that have less: as functions from rules to rules.
const UNIX = 1n;
const INET = [2n, 10n];
const NOTHING_DONE = 0x00050000; // SCMP_ACT_ERRNO with errno 0: the call is left out, and said to have succeeded
const WHOLE_INT = 0xffffffffn;

const IPC = /^(?:shm|sem|msg)(?:get|at|dt|ctl|op|timedop|snd|rcv)$|^mq_/;
// Tools give up when these fail, and hardly any looks at what came of them.
const PRETENDED = ['chmod', 'fchmod', 'fchmodat', 'fchmodat2', 'utime', 'utimes', 'utimensat', 'futimesat'];
const ATTRIBUTES = /^(?:[fl]?chown|fchownat|[fl]?(?:set|remove)xattr)$/;
// Arguments that have to be 0, for the call to be about the caller.
const OWN_ONLY = {
  sched_setparam: [zero(0)],
  sched_setscheduler: [zero(0)],
  sched_setaffinity: [zero(0)],
  sched_setattr: [zero(0)],
  setpriority: [zero(0), zero(1)],
  ioprio_set: [equal(0, 1n), zero(1)],
};

/** Without sockets of the families inet and inet6. */
export function withoutInet(rules) {
  return rules.filter((rule) => !INET.includes(familyOf(rule)));
}

/**
 * Without what only a namespace would keep from the host's own processes and files: unix sockets (a pair has no name),
 * ipc, the scheduling of other processes, and what Landlock leaves open of files that it does not let be opened: modes,
 * owners, times and extended attributes. With `inet` the host's network was asked for.
 */
export function withoutNamespaces(rules, { inet }) {
  const kept = rules.flatMap((rule) => {
    const family = familyOf(rule);
    if (family === UNIX) return [{ ...rule, names: rule.names.filter((name) => name === 'socketpair') }];
    if (family !== null && !inet) return [];
    return [{ ...rule, names: rule.names.filter((name) => !IPC.test(name) && !PRETENDED.includes(name) && !ATTRIBUTES.test(name) && !(name in OWN_ONLY)) }];
  });
  const allowed = rules.find(({ names }) => names.includes('read')).action;
  const own = Object.entries(OWN_ONLY).map(([name, conditions]) => ({ names: [name], action: allowed, conditions }));
  return [...kept.filter(({ names }) => names.length > 0), { names: PRETENDED, action: NOTHING_DONE, conditions: [] }, ...own];
}

function familyOf({ names, conditions }) {
  return names.includes('socket') ? (conditions.find(({ index }) => index === 0)?.valueTwo ?? null) : null;
}

function zero(index) {
  return equal(index, 0n);
}

function equal(index, valueTwo) {
  return { index, comparison: 'SCMP_CMP_MASKED_EQ', value: WHOLE_INT, valueTwo };
}
