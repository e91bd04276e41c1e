import type { Controller } from '../plan/plan.js';

/** Where this host can make the cgroups of its runs, prepared: a child of each parent has the controllers listed with it. */
export interface CgroupPlacement {
  kind: 'ready';
  version: 1 | 2;
  /** v2: one parent; v1: one parent per hierarchy. memory and pids are always among the controllers. */
  parents: CgroupParent[];
  /** Everything there is: `memory` and `pids`, perhaps `cpu`, and on v1 perhaps `cpuacct`. */
  controllers: Controller[];
}

export interface CgroupParent {
  controllers: Controller[];
  /** Absolute path of an existing directory below which this account can make and remove children. */
  directory: string;
}

/** A parent found, not yet tried. */
export interface LocatedParent extends CgroupParent {
  /** Where its hierarchy is mounted; nothing above it can be looked at. */
  mountPoint: string;
}

export type CgroupCode =
  /** No cgroup file system is mounted, or the kernel has the controller switched off. */
  | 'CGROUP_MISSING'
  /** The host's own cgroup cannot be seen through any mount of this mount namespace. */
  | 'CGROUP_UNREACHABLE'
  | 'CGROUP_READ_ONLY'
  /** This account may not make children there. */
  | 'CGROUP_NOT_DELEGATED'
  /** v2: the level above does not hand down memory or pids. */
  | 'CGROUP_CONTROLLER_MISSING'
  /** v2: other processes live in the cgroup that would become an inner node. */
  | 'CGROUP_BUSY'
  /** RINGFENCE_CGROUP names something that is not there. */
  | 'CGROUP_OVERRIDE_INVALID';

/** Why there is no placement, and what to do about it, ready to be typed where that is possible. */
export interface CgroupProblem {
  kind: 'unavailable';
  code: CgroupCode;
  hint: string;
}

/** Parents found, not yet tried. */
export interface CgroupSite {
  kind: 'located';
  version: 1 | 2;
  /** On v2 the controllers are known only once `prepare` has read them: the list is empty. */
  parents: LocatedParent[];
  /** v2: directory of the cgroup that the host itself is in, null where no mount shows it. */
  ownDirectory: string | null;
  /** v2: where the hierarchy is mounted; nothing above it can be looked at. */
  mountPoint: string;
  /** True when RINGFENCE_CGROUP named the parents. */
  overridden: boolean;
}
