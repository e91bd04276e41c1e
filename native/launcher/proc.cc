#include "proc.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>

#include "control_file.h"
#include "mount_api.h"
#include "report.h"

namespace ringfence {
namespace {

// What tells about the kernel or about other tenants to anybody, or is a lever in the hands of root. Files that only the
// machine's root may read stay out: their own mode holds against the guest.
const char* const kMaskedFiles[] = {"kcore",  "kmsg",      "keys",       "key-users", "kallsyms",   "latency_stats", "timer_list",
                                    "sched_debug", "sysrq-trigger", "interrupts", "modules", "config.gz", "cmdline", "diskstats",
                                    "partitions",  "locks",  "swaps", "crypto",   "buddyinfo",  "zoneinfo"};
const char* const kMaskedDirectories[] = {"acpi", "asound", "bus", "driver", "fs", "irq", "scsi", "tty", "pressure"};

bool CoverWith(int cover, int proc, const char* name) {
  Fd target(openat(proc, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!target.valid()) return errno == ENOENT || Fail(Stage::kProc, errno, "openat", name);
  Fd clone(OpenTree(cover, "", OPEN_TREE_CLONE | AT_EMPTY_PATH));
  if (!clone.valid()) return Fail(Stage::kProc, errno, "open_tree", name);
  // The guest owns the cover: read-only, or it could fill it.
  if (SetMountFlags(clone.get(), MOUNT_ATTR_RDONLY) != 0) return Fail(Stage::kProc, errno, "mount_setattr", name);
  if (Attach(clone.get(), target.get()) != 0) return Fail(Stage::kProc, errno, "move_mount", name);
  return true;
}

bool Mask(const Root& root, int proc) {
  // Of the sandbox's own tmpfs, made by this process: nobody can have put something else in their place.
  constexpr const char* kFile = ".masked-file";
  constexpr const char* kDirectory = ".masked-directory";
  Fd file(openat(root.directory.get(), kFile, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444));
  if (!file.valid()) return Fail(Stage::kProc, errno, "openat", kFile);
  if (mkdirat(root.directory.get(), kDirectory, 0555) != 0) return Fail(Stage::kProc, errno, "mkdirat", kDirectory);
  Fd directory(openat(root.directory.get(), kDirectory, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return Fail(Stage::kProc, errno, "openat", kDirectory);
  for (const char* name : kMaskedFiles) {
    if (!CoverWith(file.get(), proc, name)) return false;
  }
  for (const char* name : kMaskedDirectories) {
    if (!CoverWith(directory.get(), proc, name)) return false;
  }
  unlinkat(root.directory.get(), kFile, 0);
  unlinkat(root.directory.get(), kDirectory, AT_REMOVEDIR);
  return true;
}

bool MakeReadOnly(int proc, const char* name) {
  Fd tree(OpenTree(proc, name, OPEN_TREE_CLONE));
  if (!tree.valid()) return errno == ENOENT || Fail(Stage::kProc, errno, "open_tree", name);
  if (SetMountFlags(tree.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC) != 0) {
    return Fail(Stage::kProc, errno, "mount_setattr", name);
  }
  Fd target(openat(proc, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!target.valid() || Attach(tree.get(), target.get()) != 0) return Fail(Stage::kProc, errno, "move_mount", name);
  return true;
}

// A nested user namespace would hand the guest every capability over its own mounts and networks, and with them most of the
// kernel's attack surface. The count is per user namespace: this one lets the guest make none.
bool ForbidNesting(int proc) {
  constexpr const char* kCount = "sys/user/max_user_namespaces";
  const int error = WriteControl(proc, kCount, "0");
  if (error != 0) return Fail(Stage::kProc, error, "write", kCount);
  if (ReadNumber(proc, kCount) != 0) return Fail(Stage::kProc, ERANGE, "read back", kCount);
  return true;
}

// inotify is counted up the chain of user namespaces: what a guest holds is held by the account that made this one too, root
// itself under a root host, whose daemons could watch nothing any more. By default an account has 128 instances.
bool LimitWatching(int proc) {
  constexpr struct {
    const char* count;
    const char* most;
  } kCounts[] = {{"sys/user/max_inotify_instances", "16"}, {"sys/user/max_inotify_watches", "16384"}};
  for (const auto& [count, most] : kCounts) {
    const int error = WriteControl(proc, count, most);
    if (error != 0 && error != ENOENT) return Fail(Stage::kProc, error, "write", count); // ENOENT: a kernel without inotify
  }
  return true;
}

// Only a /proc of this pid namespace calls this process 1.
bool ShowsOwnNamespace(int proc) {
  char self[16];
  const ssize_t size = readlinkat(proc, "self", self, sizeof self - 1);
  return size == 1 && self[0] == '1';
}

} // namespace

bool MountProc(const Plan& plan, const Root& root, bool* mounted) {
  *mounted = false;
  Fd target(OpenDirectory(root, "/proc", strlen("/proc")));
  if (!target.valid()) return Fail(Stage::kProc, errno, "mkdirat", "/proc");
  if (!plan.has(kPidNamespace)) return true; // a fresh one would show the host's processes
  Fd proc = NewMount("proc", nullptr, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  if (!proc.valid()) {
    if (plan.has(kProcOptional)) return true;
    return Fail(Stage::kProc, errno, "fsmount", "proc");
  }
  if (Attach(proc.get(), target.get()) != 0) return Fail(Stage::kProc, errno, "move_mount", "/proc");
  if (!ShowsOwnNamespace(proc.get())) return Fail(Stage::kProc, ESRCH, "read back", "/proc/self");
  if (plan.has(kUserNamespace) && (!ForbidNesting(proc.get()) || !LimitWatching(proc.get()))) return false;
  if (!MakeReadOnly(proc.get(), "sys")) return false;
  if (!Mask(root, proc.get())) return false;
  *mounted = true;
  return true;
}

} // namespace ringfence
