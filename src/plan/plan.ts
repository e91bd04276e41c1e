/** The validated description of one run, as the launcher gets it. `encode.ts` turns it into bytes. */
export interface Plan {
  namespaces: Namespaces;
  /** Carry on without /proc where the kernel refuses a fresh one; never the host's. */
  procOptional: boolean;
  identity: Identity;
  limits: PlanLimits;
  cgroup: PlanCgroup | null;
  /** Absolute path inside the sandbox. */
  executable: string;
  cwd: string;
  hostname: string;
  /** argv[0] included. */
  argv: string[];
  env: Record<string, string>;
  /** The network namespace answers for every address and has a resolver. */
  hasAllowlist: boolean;
  /** Ports in the sandbox's network namespace that the host listens on; without an allowlist on 127.0.0.1 only. */
  egressPorts: EgressPort[];
  filter: SystemCallFilter;
  /** null: without, even where the kernel has it. */
  landlock: PlanLandlock | null;
  /** True when some of the binds are the caller's: the launcher looks for file systems of the kernel in them. */
  hasGrants: boolean;
  /** In order of mounting: parents before what lies below them. */
  mounts: Mount[];
}

/** A port, and the families in which the host listens on it: one at least. */
export interface EgressPort {
  port: number;
  ipv4: boolean;
  ipv6: boolean;
}

export interface Namespaces {
  user: boolean;
  mount: boolean;
  pid: boolean;
  network: boolean;
  ipc: boolean;
  uts: boolean;
  cgroup: boolean;
}

/** Who the guest is inside the sandbox and to the rest of the machine. */
export interface Identity {
  insideUid: number;
  insideGid: number;
  outsideUid: number;
  outsideGid: number;
}

/** 0 means: no limit of this kind. */
export interface PlanLimits {
  memoryBytes: number;
  pids: number;
  /** Microseconds of cpu time per 100 ms of wall time. */
  cpuQuotaUs: number;
  cpuTimeMs: number;
  openFiles: number;
  fileSizeBytes: number;
  /** Size and inode count of the one tmpfs behind every scratch directory. */
  scratchBytes: number;
  scratchInodes: number;
  /** The launcher's own deadline, behind the host's. */
  deadlineMs: number;
}

/**
 * `default`: native/seccomp/default.json; `no-inet`: the same without IPv4 and IPv6 sockets; `no-namespaces`: also without what
 * namespaces keep from the host (scripts/filter-variants.mjs), `-inet` in the host's network; else a caller's own program.
 */
export type SystemCallFilter = 'none' | 'default' | 'no-inet' | 'no-namespaces' | 'no-namespaces-inet' | { program: Uint8Array };

/** Rules over the plan's grants, and what of the network they leave open. */
export interface PlanLandlock {
  tcp: boolean;
  abstractSockets: boolean;
}

export type Controller = 'memory' | 'pids' | 'cpu' | 'cpuacct';

export interface PlanCgroup {
  version: 1 | 2;
  /** Name of the run's own directory, created and removed by the launcher. */
  name: string;
  /** v2: one parent with its controllers; v1: one parent per hierarchy. */
  parents: { controllers: Controller[]; directory: string }[];
}

/** `path` is absolute, inside the sandbox, without symlinks above its last part that the plan itself did not make. */
export type Mount =
  | { kind: 'bind'; path: string; source: string; writable: boolean; idMap: 'none' | 'required' | 'optional'; mayBeMissing: boolean }
  | { kind: 'device'; path: string; source: string; minor: number }
  | { kind: 'scratch'; path: string; mode: number }
  /** A directory inside a bind, bound on itself: as a mount point it cannot be renamed or removed. */
  | { kind: 'pin'; path: string }
  | { kind: 'directory'; path: string; mode: number }
  | { kind: 'symlink'; path: string; target: string }
  | { kind: 'file'; path: string; mode: number; content: string };
