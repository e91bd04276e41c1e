#include "guest.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filters.h"
#include "install.h"
#include "landlock.h"
#include "privileges.h"
#include "report.h"

namespace ringfence {
namespace {

bool Limit(__rlimit_resource resource, uint64_t soft, uint64_t hard, const char* name) {
  rlimit now{};
  if (getrlimit(resource, &now) != 0) return Fail(Stage::kResourceLimits, errno, "getrlimit", name);
  // Nobody here may raise a hard limit; one that is lower already is stricter still.
  const rlim_t most = hard < now.rlim_max ? hard : now.rlim_max;
  const rlimit wanted{soft < most ? soft : most, most};
  if (setrlimit(resource, &wanted) != 0) return Fail(Stage::kResourceLimits, errno, "setrlimit", name);
  return true;
}

bool ApplyResourceLimits(const Plan& plan) {
  // 1 and not 0: the kernel starts a core_pattern handler, as the machine's root, with a limit of 0 too (core(5)).
  if (!Limit(RLIMIT_CORE, 1, 1, "core")) return false;
  // Counted up the chain of user namespaces too: once they are used up, timers of the host's account cannot be made.
  if (!Limit(RLIMIT_SIGPENDING, 1024, 1024, "sigpending")) return false;
  // What the host may do to the machine's scheduler is not for the guest.
  if (!Limit(RLIMIT_NICE, 0, 0, "nice") || !Limit(RLIMIT_RTPRIO, 0, 0, "rtprio")) return false;
  if (plan.openFiles != kUnlimited && !Limit(RLIMIT_NOFILE, plan.openFiles, plan.openFiles, "nofile")) return false;
  if (plan.fileSizeBytes != kUnlimited && !Limit(RLIMIT_FSIZE, plan.fileSizeBytes, plan.fileSizeBytes, "fsize")) return false;
  if (plan.cpuTimeMs != kUnlimited) {
    // Per process and in whole seconds: behind the launcher's own count of the whole run, in case it is starved.
    const uint64_t seconds = plan.cpuTimeMs / 1000 + 1;
    if (!Limit(RLIMIT_CPU, seconds, seconds + 1, "cpu")) return false;
  }
  return true;
}

bool Verify(const Plan& plan, uint32_t* fences) {
  uid_t real, effective, saved;
  gid_t realGid, effectiveGid, savedGid;
  if (getresuid(&real, &effective, &saved) != 0 || getresgid(&realGid, &effectiveGid, &savedGid) != 0) {
    return Fail(Stage::kVerify, errno, "getresuid");
  }
  const bool uids = real == plan.insideUid && effective == plan.insideUid && saved == plan.insideUid;
  const bool gids = realGid == plan.insideGid && effectiveGid == plan.insideGid && savedGid == plan.insideGid;
  if (!uids || !gids) return Fail(Stage::kVerify, EPERM, "getresuid");
  *fences |= kFenceIdentity;
  if (!HasNoPrivileges()) return false;
  if (getsid(0) != getpid()) return Fail(Stage::kVerify, EPERM, "getsid");
  *fences |= kFencePrivileges;
  return true;
}

template <size_t N>
bool Install(const sock_filter (&program)[N]) {
  return InstallFilter(program, N);
}

// Last of all: it forbids what the stages above call.
bool ApplyFilter(const Plan& plan) {
  switch (plan.filter) {
    case Filter::kNone: return true;
    case Filter::kDefault: return Install(kDefaultFilter);
    case Filter::kNoInet: return Install(kNoInetFilter);
    case Filter::kNoNamespaces: return Install(kNoNamespacesFilter);
    case Filter::kNoNamespacesInet: return Install(kNoNamespacesInetFilter);
    case Filter::kOwn: return InstallFilter(reinterpret_cast<const sock_filter*>(plan.program), plan.programLength);
  }
  errno = EINVAL;
  return false;
}

void ResetSignals() {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

} // namespace

void RunGuest(const Plan& plan, uint32_t fences, GuestFailure* failure) {
  bool ready = true;
  if (setsid() < 0) ready = Fail(Stage::kSession, errno, "setsid");
  umask(022);
  int landlockAbi = 0;
  ready = ready && ApplyLandlock(plan, &landlockAbi);
  ready = ready && ApplyResourceLimits(plan);
  if (ready && chdir(plan.cwd) != 0) ready = Fail(Stage::kWorkingDirectory, errno, "chdir", plan.cwd);
  ready = ready && Verify(plan, &fences);
  if (!ready) _exit(1);
  ResetSignals();
  // Everything above 2 goes with the execve, which still needs the socket to tell of its own failure.
  if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) != 0) {
    Fail(Stage::kExec, errno, "close_range");
    _exit(1);
  }
  if (landlockAbi > 0) fences |= kFenceLandlock;
  if (plan.filter != Filter::kNone) fences |= kFenceSystemCalls;
  SendReady(fences, landlockAbi);
  if (!ApplyFilter(plan)) {
    *failure = {Stage::kSystemCalls, errno, "seccomp"};
    _exit(126);
  }
  execve(plan.executable, plan.argv, plan.env);
  *failure = {Stage::kExec, errno, "execve"};
  _exit(failure->error == ENOENT ? 127 : 126);
}

} // namespace ringfence
