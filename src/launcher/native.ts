/** The border to the addon: everything the native side offers to TypeScript. */

/** What one launch needs. */
export interface LaunchRequest {
  /** Absolute path of the launcher executable. */
  launcher: string;
  /** The encoded plan (`src/plan/encode.ts`); copied before the call returns. */
  plan: Uint8Array;
  /** False: the guest gets end of file at once. */
  withStdin: boolean;
  /** Called once for each message from the launcher, with the descriptors that came along (close-on-exec, owned by the callee). */
  onRecord(record: Buffer, descriptors: number[]): void;
  /** Called exactly once, after the launcher was reaped and its last record was delivered. */
  onExit(exitCode: number | null, signal: number | null): void;
}

/** Descriptors of the host's ends of the guest's pipes: close-on-exec, non-blocking. */
export interface Streams {
  /** Absent without `withStdin`. */
  stdin?: number;
  stdout: number;
  stderr: number;
}

/** A launcher that runs. */
export interface Launch {
  pid: number;
  /** How long ago, in milliseconds, it was started when this object was made: the event loop may have been held up. */
  ageMs: number;
  /** To be called once: the streams are the caller's then. What is never taken is closed. */
  takeStreams(): Streams;
  /** Sends one command; false when the launcher is gone already. Never throws, never blocks. */
  send(command: Uint8Array): boolean;
  /** Closes the lifeline: the launcher ends the sandbox, cleans up and exits. Idempotent. */
  hangUp(): void;
  /** SIGKILL to the launcher itself, by pidfd: the last resort. Idempotent. */
  kill(): void;
}

/** What watching one packet socket needs. */
export interface PacketRequest {
  /** Lent until `close()`; closed only where the environment ends before that. */
  fd: number;
  /** The first bytes of one packet from its network header on. Called at a bounded rate; the kernel drops what is too much. */
  onPacket(bytes: Buffer): void;
}

export interface PacketWatch {
  /** Delivers what is queued and lets go of the descriptor. Returns how many packets the kernel dropped. Idempotent. */
  close(): number;
}

/** A v1 cgroup that the host is in. */
export interface PlaceRequest {
  /** Absolute path of its `cgroup.procs`. */
  procs: string;
  /** All of /proc/self/cgroup as it was when the host was seen there. */
  place: string;
}

export interface Native {
  /**
   * Starts the launcher with posix_spawn, on a thread of its own. Rejects with an Error with `code`, `errno` and
   * `syscall` when that fails. The first record comes after the promise's own callbacks.
   */
  launch(request: LaunchRequest): Promise<Launch>;
  /**
   * Moves the host, by a thread of libuv's pool, to where it is already; see `src/cgroup/migration-pace.ts`. Resolves with
   * false when it is somewhere else by now, or may not be moved.
   */
  keepPlace(request: PlaceRequest): Promise<boolean>;
  /** Reads a packet socket on the event loop. Throws an Error with `code`, `errno` and `syscall` when that fails. */
  watchPackets(request: PacketRequest): PacketWatch;
  /** How many packets came through a packet socket's filter since this was asked last. */
  packetCount(fd: number): number;
  /** How many packets the kernel dropped at a socket, as its buffer or its queue of connections was full. */
  socketDrops(fd: number): number;
}
