#include "namespaces.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "id_map.h"
#include "report.h"

namespace ringfence {
namespace {

struct Namespace {
  uint32_t flag;
  uint64_t cloneFlag;
  const char* link;
  uint32_t fence;
};

// The cgroup namespace is not here: init unshares it once it is inside the cgroup that is to be its root.
constexpr Namespace kNamespaces[] = {
    {kUserNamespace, CLONE_NEWUSER, "user", kFenceUserNamespace},
    {kMountNamespace, CLONE_NEWNS, "mnt", kFenceFilesystem},
    {kPidNamespace, CLONE_NEWPID, "pid", kFenceProcessTree},
    {kNetworkNamespace, CLONE_NEWNET, "net", kFenceNetwork},
    {kIpcNamespace, CLONE_NEWIPC, "ipc", 0},
    {kUtsNamespace, CLONE_NEWUTS, "uts", 0},
};

// Container runtimes hide clone3, whose flags no filter can read, and let clone make whatever is no namespace. The two
// know the same flags but CLONE_INTO_CGROUP: AttachInit sees to that.
pid_t CloneWithoutClone3(const struct clone_args& arguments) {
  const uint64_t flags = (arguments.flags & ~static_cast<uint64_t>(CLONE_INTO_CGROUP)) | arguments.exit_signal;
  // The third argument is the parent's tid, here its pidfd, on every architecture that is built for.
  return static_cast<pid_t>(syscall(SYS_clone, flags, 0, arguments.pidfd, 0, 0));
}

} // namespace

pid_t CloneInit(const Plan& plan, int cgroupFd, Fd* pidfd) {
  struct clone_args arguments {};
  int fd = -1;
  arguments.flags = CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<uint64_t>(&fd);
  arguments.exit_signal = SIGCHLD;
  for (const Namespace& each : kNamespaces) {
    if (plan.has(each.flag)) arguments.flags |= each.cloneFlag;
  }
  if (cgroupFd >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<uint64_t>(cgroupFd);
  }
  pid_t pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid < 0 && errno == ENOSYS) pid = CloneWithoutClone3(arguments);
  if (pid < 0) {
    Fail(Stage::kNamespaces, errno, "clone3");
    return -1;
  }
  if (pid > 0) pidfd->reset(fd);
  return pid;
}

bool VerifyNamespaces(const Plan& plan, pid_t init, uint32_t* fences) {
  for (const Namespace& each : kNamespaces) {
    if (!plan.has(each.flag)) continue;
    char own[32];
    char path[40];
    struct stat ours, theirs;
    snprintf(own, sizeof own, "/proc/self/ns/%s", each.link);
    snprintf(path, sizeof path, "/proc/%d/ns/%s", init, each.link);
    if (stat(own, &ours) != 0 || stat(path, &theirs) != 0) return Fail(Stage::kNamespaces, errno, "stat", path);
    if (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino) return Fail(Stage::kNamespaces, EPERM, "compare", path);
    *fences |= each.fence;
  }
  return true;
}

bool MapIds(const Plan& plan, pid_t init) {
  if (!plan.has(kUserNamespace)) return true;
  if (geteuid() != 0 || plan.outsideUid == geteuid()) {
    const int error = DenySetgroups(init);
    if (error != 0) return Fail(Stage::kIdMap, error, "write", "setgroups");
  }
  int error = WriteIdMap(init, "uid_map", plan.insideUid, plan.outsideUid);
  if (error != 0) return Fail(Stage::kIdMap, error, "write", "uid_map");
  error = WriteIdMap(init, "gid_map", plan.insideGid, plan.outsideGid);
  if (error != 0) return Fail(Stage::kIdMap, error, "write", "gid_map");
  return true;
}

} // namespace ringfence
