// What host, launcher and init say to each other. All integers are little-endian and of fixed width.
// src/plan/encode.ts writes the plan, src/launcher/records.ts reads the records; tests hold the two sides together.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringfence {

// Descriptors the launcher is started with: 0, 1, 2 are the guest's standard streams.
constexpr int kControlFd = 3; // SOCK_SEQPACKET: records out, commands in; its end of file means that the host is gone
constexpr int kPlanFd = 4;    // memfd with the plan

enum class Stage : uint32_t {
#define STAGE(identifier, name) identifier,
#include "stages.def"
#undef STAGE
};

// ---- Plan: header, then the fields in this order. A string is u32 length, bytes, one NUL (not counted). ----
// u32 magic, u32 version, u32 flags, u32 insideUid, insideGid, outsideUid, outsideGid,
// u64 memoryBytes, pids, cpuQuotaUs, cpuTimeMs, openFiles, fileSizeBytes, scratchBytes, scratchInodes, deadlineMs,
// u32 cgroupVersion, string cgroupName, u32 n, n * { u32 controllers, string parentDirectory },
// string executable, string cwd, string hostname, u32 n, n * string argv, u32 n, n * string env,
// u32 n, n * u32 port and PortFamily, u32 filter, string program (kOwnFilter: struct sock_filter[]; else empty),
// u32 n, n * { u32 kind, u32 flags, u32 mode, string path, string source }.
constexpr uint32_t kPlanMagic = 0x31464752; // "RGF1"
constexpr uint32_t kPlanVersion = 4;
constexpr uint64_t kUnlimited = 0; // for every limit of the plan

enum PlanFlag : uint32_t {
  kUserNamespace = 1u << 0,
  kMountNamespace = 1u << 1,
  kPidNamespace = 1u << 2,
  kNetworkNamespace = 1u << 3,
  kIpcNamespace = 1u << 4,
  kUtsNamespace = 1u << 5,
  kCgroupNamespace = 1u << 6,
  kHasGrants = 1u << 12,   // some binds are the caller's: no file system of the kernel may be mounted in them
  kLandlock = 1u << 9,            // where the kernel has it; without a mount namespace the mounts are its rules on the host's paths
  kLandlockNoTcp = 1u << 10,      // no TCP at all, by ABI 4
  kLandlockNoAbstract = 1u << 11, // no abstract unix socket of anybody else, by ABI 6
  kEgress = 1u << 8,       // loopback answers for every address, and there is DNS; without it the plan's ports are on 127.0.0.1
  kProcOptional = 1u << 7, // carry on without /proc where the kernel refuses a fresh one (never the host's)
};

// With a port of the plan: the families in which the host listens on it.
enum PortFamily : uint32_t {
  kPortIpv4 = 1u << 16,
  kPortIpv6 = 1u << 17,
};

// Which system-call filter the guest gets.
enum class Filter : uint32_t {
  kNone = 0,
  kDefault = 1, // native/seccomp/default.json
  kNoInet = 2,  // the same without IPv4 and IPv6 sockets
  kOwn = 3,     // the caller's profile, compiled by the host
  kNoNamespaces = 4,     // for a guest without them: no socket with a name or an address
  kNoNamespacesInet = 5, // the same in the host's network
};

enum Controller : uint32_t {
  kMemoryController = 1u << 0,
  kPidsController = 1u << 1,
  kCpuController = 1u << 2,
  kCpuAccountController = 1u << 3, // v1 only
};

enum class MountKind : uint32_t {
  kBind = 1,      // source: a host path without symlinks
  kScratch = 2,   // a writable directory of the run's one size-limited tmpfs
  kDirectory = 3, // an empty directory of the root
  kSymlink = 4,   // source: the link's target
  kFile = 5,      // source: the file's content
  kPin = 6,       // a directory of the view bound on itself: as a mount point it cannot be renamed or removed
};

enum MountFlag : uint32_t {
  kWritable = 1u << 0,      // bind only: else read-only
  kIdMapped = 1u << 1,      // bind only: the source's owner appears as the guest; refuse where the kernel cannot
  kIdMapOptional = 1u << 2, // with kIdMapped: a plain bind where the kernel cannot
  kDeviceNode = 1u << 3,    // bind only: source must be the character device 1:mode
  kMayBeMissing = 1u << 4,  // bind only: skip where the source does not exist
};

// ---- Commands: host to launcher, one a message. ----
enum class CommandKind : uint32_t { kSignal = 1, kKill = 2 };
struct Command {
  uint32_t kind;
  uint32_t value; // kSignal: the signal's number, sent to the guest process
};

// ---- Records: launcher (and init and the guest before its execve) to host, one a message. ----
enum class RecordKind : uint32_t {
  kFailure = 1, // a stage failed: stage, error, detail; nothing of the guest ran
  kReady = 2,   // just before execve: fences holds what was verified, waitStatus the ABI of Landlock in force or 0
  // Comes with descriptors of the sandbox's network: DNS over UDP and TCP at 127.0.0.1:53, a packet socket that sees the
  // first packet of every attempt to leave that no listener takes, another one that counts those a listener should take, then
  // one TCP listener for each port of the plan with kPortIpv4, then one for each with kPortIpv6 where the machine has it
  // (waitStatus: 1 if so, else 0).
  kSockets = 4,
  kEnded = 3,   // the guest is gone and its cgroup is read and removed: waitStatus, cause, usage
};

// What was verified for this very run, in kReady.
enum FenceBit : uint32_t {
  kFencePrivileges = 1u << 0,    // no capability in any set, no_new_privs read back, own session
  kFenceIdentity = 1u << 1,      // real, effective and saved ids are the plan's, and the map is the plan's
  kFenceFilesystem = 1u << 2,    // own mount namespace, root is the read-only tmpfs
  kFenceNetwork = 1u << 3,       // own network namespace
  kFenceProcessTree = 1u << 4,   // own pid namespace
  kFenceProcessLimit = 1u << 5,  // pids.max read back and the guest in that cgroup
  kFenceMemory = 1u << 6,        // the memory limit read back and the guest in that cgroup
  kFenceCpu = 1u << 7,           // the cpu quota read back and the guest in that cgroup
  kFenceProc = 1u << 8,          // /proc is the pid namespace's own
  kFenceUserNamespace = 1u << 9, // own user namespace
  kFenceSystemCalls = 1u << 10,  // a filter is in force; a failure at that stage takes this back
  kFenceLandlock = 1u << 11,     // the rules are in force
  kFenceCpuTime = 1u << 12,      // the cpu time of the guest's cgroup could be read
};

enum class EndCause : uint32_t {
  kGuestEnded = 0,   // waitStatus is the guest's
  kKilled = 1,       // the host's kKill
  kDeadline = 2,     // the launcher's own deadline, the backstop
  kOutOfMemory = 3,  // the cgroup's oom_kill counter is above zero
  kCpuLimit = 4,     // the run's total cpu time reached cpuTimeMs
  kHostGone = 5,
  kInitDied = 6,     // process 1 ended without a word
};

constexpr uint64_t kUnknown = UINT64_MAX;

struct Record {
  uint32_t kind;
  uint32_t stage;
  int32_t error;
  uint32_t fences;
  int32_t waitStatus; // as of waitpid(2); -1 where the guest never started or did not end by itself
  uint32_t cause;
  uint64_t cpuUserUs;
  uint64_t cpuSystemUs;
  uint64_t peakMemoryBytes;
  uint64_t peakPids;
  uint64_t oomKills;
  uint64_t pidsRefused;
  char detail[160]; // UTF-8, NUL-terminated: "syscall subject", for example "openat2 /srv/data"
};
static_assert(sizeof(Record) == 232, "records are a wire format");

} // namespace ringfence
