#include "landlock.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fd.h"
#include "report.h"

// The numbers are the kernel's (linux/landlock.h), which the headers of the build may be too old for.
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

namespace ringfence {
namespace {

constexpr uint32_t kAskVersion = 1u << 0;
constexpr int kRulePathBeneath = 1;
constexpr int kNewestAbi = 7;
constexpr unsigned kDeviceMajor = 1; // mem(4)

enum Right : uint64_t {
  kExecute = 1u << 0,
  kWriteFile = 1u << 1,
  kReadFile = 1u << 2,
  kReadDirectory = 1u << 3,
  kMakeCharacterDevice = 1u << 6,
  kMakeBlockDevice = 1u << 11,
  kAbi1Files = (1u << 13) - 1,
  kRefer = 1u << 13,         // ABI 2; ABI 1 refuses every rename and link between directories
  kTruncate = 1u << 14,      // ABI 3
  kIoctlDevice = 1u << 15,   // ABI 5
};
enum NetRight : uint64_t { kBindTcp = 1u << 0, kConnectTcp = 1u << 1 };            // ABI 4
enum Scope : uint64_t { kAbstractSockets = 1u << 0, kSignals = 1u << 1 };           // ABI 6
enum LogFlag : uint32_t { kSameExecOff = 1u << 0, kSubdomainsOff = 1u << 2 };       // ABI 7

constexpr uint64_t kLook = kReadFile | kReadDirectory | kExecute;
// A device node is never made; ioctl on one is never needed.
constexpr uint64_t kChange = (kAbi1Files | kRefer | kTruncate) & ~(kMakeCharacterDevice | kMakeBlockDevice);
// What a rule on anything but a directory may say.
constexpr uint64_t kFileRights = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDevice;

struct RulesetAttributes {
  uint64_t files;
  uint64_t net;
  uint64_t scoped;
};

struct [[gnu::packed]] PathBeneath {
  uint64_t allowed;
  int32_t parent;
};

// Of a host's /proc, where it is the only one: nothing that tells of other processes.
const char* const kHostProc[] = {"/proc/self",   "/proc/sys",     "/proc/meminfo", "/proc/cpuinfo", "/proc/stat",
                                 "/proc/uptime", "/proc/loadavg", "/proc/version", "/proc/filesystems"};

int OpenPath(const char* path, uint64_t resolve) {
  struct open_how how {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = resolve;
  return static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

class Ruleset {
 public:
  Ruleset(int abi, const Plan& plan) {
    attributes_.files = kAbi1Files;
    if (abi >= 2) attributes_.files |= kRefer;
    if (abi >= 3) attributes_.files |= kTruncate;
    if (abi >= 4 && plan.has(kLandlockNoTcp)) attributes_.net = kBindTcp | kConnectTcp;
    if (abi >= 5) attributes_.files |= kIoctlDevice;
    if (abi >= 6) attributes_.scoped = kSignals;
    if (abi >= 6 && plan.has(kLandlockNoAbstract)) attributes_.scoped |= kAbstractSockets;
    fd_.reset(static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes_, sizeof attributes_, 0)));
  }

  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }

  // Allows it on the file, or on everything in and below the directory.
  bool Allow(int path, uint64_t rights, const char* name) const {
    struct stat info;
    if (fstat(path, &info) != 0) return Fail(Stage::kLandlock, errno, "fstat", name);
    PathBeneath rule{rights & attributes_.files, path};
    if (!S_ISDIR(info.st_mode)) rule.allowed &= kFileRights;
    if (syscall(SYS_landlock_add_rule, fd_.get(), kRulePathBeneath, &rule, 0) != 0) {
      return Fail(Stage::kLandlock, errno, "landlock_add_rule", name);
    }
    return true;
  }

  // The path was resolved before: a symlink in it has been put there since.
  bool AllowPath(const char* path, uint64_t rights, bool mayBeMissing) const {
    Fd fd(OpenPath(path, RESOLVE_NO_SYMLINKS));
    if (fd.valid()) return Allow(fd.get(), rights, path);
    if (mayBeMissing && (errno == ENOENT || errno == EACCES)) return true;
    return Fail(Stage::kLandlock, errno, "openat2", path);
  }

  // A file of the system's, which may be a link.
  bool AllowSystem(const char* path, uint64_t rights) const {
    Fd fd(open(path, O_PATH | O_CLOEXEC));
    return !fd.valid() || Allow(fd.get(), rights, path);
  }

  bool AllowDevice(const Mount& mount) const {
    Fd fd(OpenPath(mount.source, RESOLVE_NO_SYMLINKS));
    struct stat info;
    if (!fd.valid() || fstat(fd.get(), &info) != 0) return Fail(Stage::kLandlock, errno, "openat2", mount.source);
    if (!S_ISCHR(info.st_mode) || info.st_rdev != makedev(kDeviceMajor, mount.mode)) {
      return Fail(Stage::kLandlock, ENODEV, "fstat", mount.source);
    }
    return Allow(fd.get(), kReadFile | kWriteFile, mount.source);
  }

 private:
  RulesetAttributes attributes_{};
  Fd fd_;
};

// The root is the sandbox's own tmpfs and holds nothing but the view. Its one rule does not let the same files be opened
// by way of the host's root, for a rule counts for the way a file is reached by.
bool AllowOwnRoot(const Plan& plan, const Ruleset& ruleset) {
  if (!ruleset.AllowPath("/", kLook, false)) return false;
  if (!ruleset.AllowPath("/dev", kWriteFile, true) || !ruleset.AllowPath("/proc", kWriteFile, true)) return false;
  for (uint32_t i = 0; i < plan.mountCount; i++) {
    const Mount& mount = plan.mounts[i];
    const bool writable = mount.kind == MountKind::kScratch || (mount.kind == MountKind::kBind && (mount.flags & kWritable) != 0);
    if (writable && !ruleset.AllowPath(mount.path, kChange, (mount.flags & kMayBeMissing) != 0)) return false;
  }
  return true;
}

// The host's own paths: of the plan's view, what the host has of it.
bool AllowOnHost(const Plan& plan, const Ruleset& ruleset) {
  for (uint32_t i = 0; i < plan.mountCount; i++) {
    const Mount& mount = plan.mounts[i];
    bool allowed = true;
    if (mount.kind == MountKind::kScratch) allowed = ruleset.AllowPath(mount.path, kLook | kChange, false);
    if (mount.kind == MountKind::kFile) allowed = ruleset.AllowSystem(mount.path, kReadFile);
    if (mount.kind == MountKind::kBind && (mount.flags & kDeviceNode) != 0) allowed = ruleset.AllowDevice(mount);
    else if (mount.kind == MountKind::kBind) {
      const bool writable = (mount.flags & kWritable) != 0;
      const uint64_t rights = writable ? kLook | kChange : kLook;
      allowed = ruleset.AllowPath(mount.source, rights, (mount.flags & kMayBeMissing) != 0);
    }
    if (!allowed) return false;
  }
  for (const char* path : kHostProc) {
    if (!ruleset.AllowSystem(path, kReadFile | kReadDirectory)) return false;
  }
  return true;
}

// The kernel has no question for it, but refuses what it would allow otherwise.
bool IsInForce(const Plan& plan, int abi) {
  if (abi >= 6 && (kill(getppid(), 0) == 0 || errno != EPERM)) return Fail(Stage::kLandlock, EPROTO, "kill", "init");
  if (plan.has(kMountNamespace)) return true;
  Fd root(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.valid() || errno != EACCES) return Fail(Stage::kLandlock, EPROTO, "open", "/");
  return true;
}

} // namespace

bool ApplyLandlock(const Plan& plan, int* abi) {
  *abi = 0;
  if (!plan.has(kLandlock)) return true;
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion);
  if (version < 0) {
    // No such call; not switched on at boot; or refused by an outer filter.
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM) return true;
    return Fail(Stage::kLandlock, errno, "landlock_create_ruleset", "version");
  }
  const int usable = version < kNewestAbi ? static_cast<int>(version) : kNewestAbi;
  // As a second wall ABI 1 would cost more than it gives: programs rename between directories.
  if (usable < 2 && plan.has(kMountNamespace)) return true;
  const Ruleset ruleset(usable, plan);
  if (!ruleset.valid()) return Fail(Stage::kLandlock, errno, "landlock_create_ruleset");
  if (!(plan.has(kMountNamespace) ? AllowOwnRoot(plan, ruleset) : AllowOnHost(plan, ruleset))) return false;
  // What a guest is refused, or refuses itself, must not fill the machine's audit log.
  const uint32_t flags = usable >= 7 ? kSameExecOff | kSubdomainsOff : 0;
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), flags) != 0) return Fail(Stage::kLandlock, errno, "landlock_restrict_self");
  if (!IsInForce(plan, usable)) return false;
  *abi = usable;
  return true;
}

} // namespace ringfence
