import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';

import { nameRun } from '../cgroup/run-name.js';
import type { HostFacts } from '../host/facts.js';
import type { RunOptions } from '../run/options.js';
import type { Fence } from '../run/result.js';
import { planAccountFiles } from './account-files.js';
import { planCgroup } from './cgroup.js';
import { encodePlan } from './encode.js';
import { planEnvironment } from './environment.js';
import { FenceUnavailable } from './errors.js';
import type { Executable } from './executable.js';
import { findExecutable } from './executable.js';
import { layFilesystem } from './filesystem.js';
import type { Grant } from './grants.js';
import { resolveGrants } from './grants.js';
import { planHostScratch, refuseReadOnlyInWritable } from './host-view.js';
import { needsIdMap, planIdentity } from './identity.js';
import { planLimits } from './limits.js';
import { HOSTNAME, hasOwnNetwork, isNetworkFenceOff, planEgressPorts, planNameFiles } from './network.js';
import type { Identity, Mount, Namespaces, Plan } from './plan.js';
import { nameOf } from './paths.js';
import { realPathOf } from './real-path.js';
import { planFilter } from './filter.js';
import { planLandlock } from './landlock.js';
import { findRuntimeFiles } from './runtime-files.js';
import type { Scratch } from './scratch.js';
import { planScratch } from './scratch.js';

/** The options that a plan depends on. */
export type PlanOptions = Pick<
  RunOptions,
  'seccomp' | 'command' | 'args' | 'cwd' | 'cwdReadOnly' | 'env' | 'nodeHeapMb' | 'timeoutMs' | 'gracePeriodMs' | 'network' | 'filesystem' | 'limits'
>;

export interface MadeUpFile {
  path: string;
  content: string;
}

/** What a run has that no caller of runSandboxed can ask for. */
export interface Service {
  /** Files of the sandbox alone, readable by all. Where there is no mount namespace they lie elsewhere, and `args` with them. */
  files: readonly MadeUpFile[];
  /** A port of the sandbox's loopback that the host answers on, besides those of an allowlist. */
  port: number;
}

export interface PlannedRun {
  plan: Plan;
  /** The plan as bytes for the launcher. */
  encoded: Uint8Array;
  /** What the guest's working directory is called, inside and, for a caller's directory, outside: a path without symlinks. */
  cwd: string;
  cwdOwnedBySandbox: boolean;
  /**
   * Scratch directories on the host, where there is no mount namespace: whoever launches makes them, in this order (0700,
   * owned by `plan.identity.outsideUid`), and removes them.
   */
  hostDirectories: readonly string[];
  /** Files to make in them. */
  hostFiles: readonly MadeUpFile[];
  nodeHeapMbApplied: number | null;
}

/**
 * Options and host facts to the plan of one run.
 *
 * @param dropped fences to leave out, in best-effort isolation
 * @throws RangeError that names the field for a path that cannot be granted; CommandNotFound; FenceUnavailable when a
 *   fence that is not dropped cannot be had on this host.
 */
export async function planRun(
  options: PlanOptions,
  facts: HostFacts,
  dropped: ReadonlySet<Fence>,
  service: Service | null = null,
): Promise<PlannedRun> {
  const namespaces = planNamespaces(hasOwnNetwork(options.network, dropped, process.env), dropped);
  const identity = planIdentity(facts, namespaces.user);
  if (identity === null) {
    throw new FenceUnavailable(
      'identity',
      'NO_UNPRIVILEGED_ID',
      "only the machine's root is mapped into this user namespace; map more ids (unshare --map-auto, /etc/subuid and " +
        '/etc/subgid), or start the program as an ordinary user',
    );
  }
  const cgroup = planCgroup(facts.cgroup, facts, options.limits, dropped);
  const { env, nodeHeapMbApplied } = planEnvironment(options, process.env, process.execPath);
  const granted = await resolveGrants(options);
  const grants = granted.cwd === null ? granted.grants : [...granted.grants, granted.cwd];
  const executable = await findExecutable(options.command, env['PATH'], facts.base);
  const ownsCwd = granted.cwd === null;
  const hostTmpdir = resolve(tmpdir());
  const { made, root, ...scratch } = namespaces.mount
    ? { ...(await planScratch({ base: facts.base, home: env['HOME'], tmpdir: env['TMPDIR'], hostTmpdir, grants, ownsCwd })), made: [], root: null }
    : await planHostScratch(env, grants, await realPathOf(hostTmpdir), ownsCwd, () => nameRun(facts));
  if (!namespaces.mount) refuseReadOnlyInWritable(grants);
  const egressPorts = planEgressPorts(options.network, namespaces.network, service?.port ?? null);
  const hasAllowlist = namespaces.network && typeof options.network !== 'string';
  const files = service?.files ?? [];
  const moved = new Map(root === null ? [] : files.map(({ path }) => [path, `${root}/${nameOf(path)}`]));
  const view: View = { env, grants, executable, scratch, identity, namespaces, hasAllowlist, files };
  const cwd = granted.cwd?.real ?? scratch.ownedCwd ?? '/';
  // The caller's event loop gets a turn about half-way.
  await turn();
  const landlock = withTcp(service !== null, planLandlock(options, namespaces.network, dropped, isNetworkFenceOff(process.env)));
  const plan: Plan = {
    namespaces,
    // The guest can do with less of /proc than it asked for, but never with the host's.
    procOptional: true,
    identity,
    limits: planLimits(options, dropped),
    cgroup,
    executable: executable.path,
    cwd,
    hostname: HOSTNAME,
    argv: [options.command, ...options.args.map((arg) => moved.get(arg) ?? arg)],
    env,
    hasAllowlist,
    egressPorts,
    // An attendant is on the other end of a TCP connection.
    filter: await planFilter(options, facts.profiles, namespaces, dropped, isNetworkFenceOff(process.env) || service !== null),
    landlock,
    hasGrants: grants.length > 0,
    // Without a mount namespace they are the rules of Landlock.
    mounts: namespaces.mount || landlock !== null ? await planMounts(view, facts, dropped) : [],
  };
  const hostFiles = root === null ? [] : files.map(({ path, content }) => ({ path: moved.get(path) ?? path, content }));
  return { plan, encoded: encodePlan(plan), cwd, cwdOwnedBySandbox: ownsCwd, hostDirectories: made, hostFiles, nodeHeapMbApplied };
}

function withTcp(wanted: boolean, landlock: Plan['landlock']): Plan['landlock'] {
  return wanted && landlock !== null ? { ...landlock, tcp: true } : landlock;
}

function madeUpFile({ path, content }: MadeUpFile): Mount {
  return { kind: 'file', path, mode: 0o444, content };
}

interface View {
  env: Record<string, string>;
  grants: Grant[];
  executable: Executable;
  scratch: Scratch;
  identity: Identity;
  namespaces: Namespaces;
  hasAllowlist: boolean;
  files: Service['files'];
}

async function planMounts(view: View, facts: HostFacts, dropped: ReadonlySet<Fence>): Promise<Mount[]> {
  const { env, grants, executable, scratch, identity } = view;
  const runtime = await findRuntimeFiles(executable, {
    base: facts.base,
    searchPath: env['PATH'],
    visible: grants.map(({ real }) => real).filter((real) => real !== '/'),
    homes: facts.homes,
    scratch: scratch.directories.map(({ path }) => path),
  });
  const nameFiles = await planNameFiles(view.namespaces.network, view.hasAllowlist);
  const mapped = needsIdMap(identity, facts);
  return layFilesystem({
    base: facts.base,
    grants,
    runtime,
    scratch,
    files: [...planAccountFiles(identity, env['HOME']), ...nameFiles, ...view.files.map(madeUpFile)],
    // Without the identity fence there may be no user namespace to map through: then what others may do is all there is.
    writableIdMap: !mapped ? 'none' : dropped.has('identity') ? 'optional' : 'required',
  });
}

function planNamespaces(network: boolean, dropped: ReadonlySet<Fence>): Namespaces {
  const user = !dropped.has('identity');
  const mount = !dropped.has('filesystem');
  const any = user || mount;
  return { user, mount, pid: any, network, ipc: any, uts: any, cgroup: any };
}
