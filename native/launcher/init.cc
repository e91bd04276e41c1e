#include "init.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "egress.h"
#include "grants.h"
#include "guest.h"
#include "loopback.h"
#include "orphans.h"
#include "privileges.h"
#include "proc.h"
#include "report.h"
#include "root.h"

namespace ringfence {
namespace {

bool EnterIdentity(const Plan& plan) {
  // The raw calls: this process has one thread, and libc's wrappers want to tell the others.
  if (plan.outsideUid != geteuid() || !plan.has(kUserNamespace)) {
    if (syscall(SYS_setgroups, 0, nullptr) != 0 && errno != EPERM) return Fail(Stage::kIdentity, errno, "setgroups");
  }
  if (syscall(SYS_setresgid, plan.insideGid, plan.insideGid, plan.insideGid) != 0) return Fail(Stage::kIdentity, errno, "setresgid");
  if (syscall(SYS_setresuid, plan.insideUid, plan.insideUid, plan.insideUid) != 0) return Fail(Stage::kIdentity, errno, "setresuid");
  // The keys of the host's session would come along. Without keyctl (no such kernel, an outer filter) the guest has none
  // either; where the account's keys are used up, the built-in filter is what keeps it from them.
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0 && errno != ENOSYS && errno != EPERM) {
    const bool filtered = plan.filter == Filter::kDefault || plan.filter == Filter::kNoInet;
    if (errno != EDQUOT || !filtered) return Fail(Stage::kIdentity, errno, "keyctl KEYCTL_JOIN_SESSION_KEYRING");
  }
  return true;
}

bool HoldLifeline(const Plan& plan, int launcher) {
  // Without a pid namespace the guest would outlive an init that is killed: there init hears of it by its socket alone,
  // and ends the guest first.
  if (plan.has(kPidNamespace) && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Fail(Stage::kLifeline, errno, "prctl PR_SET_PDEATHSIG");
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return Fail(Stage::kLifeline, errno, "prctl PR_SET_CHILD_SUBREAPER");
  // A launcher that died before the first call sends no signal any more; its socket tells.
  pollfd poll_fd{launcher, POLLIN, 0};
  if (poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLHUP) != 0) return Fail(Stage::kLifeline, EPIPE, "poll", "launcher");
  return true;
}

bool SetHostname(const Plan& plan) {
  if (!plan.has(kUtsNamespace)) return true;
  if (sethostname(plan.hostname, __builtin_strlen(plan.hostname)) != 0) return Fail(Stage::kHostname, errno, "sethostname");
  return true;
}

bool ReceiveGo(int launcher, Go* go) {
  ssize_t got;
  while ((got = recv(launcher, go, sizeof *go, 0)) < 0 && errno == EINTR) {
  }
  return got == sizeof *go; // else the launcher gave up, and has said why
}

// What has to wait until the launcher has looked at this process and put it into its cgroup.
bool Seal(const Plan& plan) {
  if (plan.has(kCgroupNamespace) && unshare(CLONE_NEWCGROUP) != 0) return Fail(Stage::kSeal, errno, "unshare", "cgroup namespace");
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return Fail(Stage::kSeal, errno, "prctl PR_SET_DUMPABLE");
  return true;
}

bool BuildSandbox(const Plan& plan, Sources* sources, uint32_t* fences) {
  if (!plan.has(kMountNamespace)) return true;
  Root root;
  bool procMounted = false;
  if (!BuildRoot(plan, &root)) return false;
  if (!BuildView(plan, *sources, &root)) return false;
  if (!MountProc(plan, root, &procMounted)) return false;
  // A /proc of its own lists just the sandbox's mounts; without one the old /proc does, among all the others.
  if (plan.has(kHasGrants) && !procMounted && !CheckGrants("/proc/self/mountinfo", kRootPlace, "/usr/proc")) return false;
  if (!Pivot(&root)) return false;
  if (plan.has(kHasGrants) && procMounted && !CheckGrants("/proc/self/mountinfo", "/", "/proc")) return false;
  if (procMounted) *fences |= kFenceProc;
  return true;
}

// Order: see stages.def.
bool SetUp(const Plan& plan, Sources* sources, bool sourcesPinned, int launcher, uint32_t* fences) {
  Go go{};
  if (!ReceiveGo(launcher, &go)) return false;
  if (plan.has(kMountNamespace) && !sourcesPinned && !PinSources(plan, sources)) return false;
  if (!EnterIdentity(plan)) return false;
  if (!HoldLifeline(plan, launcher)) return false;
  if (!SetHostname(plan)) return false;
  if (plan.has(kNetworkNamespace) && !BringLoopbackUp()) return false;
  if (plan.has(kEgress) && !OpenEgress(plan)) return false;
  if (!plan.has(kEgress) && plan.portCount > 0 && !OpenListeners(plan)) return false;
  if (!BuildSandbox(plan, sources, fences)) return false;
  if (!ReceiveGo(launcher, &go)) return false;
  *fences |= go.fences;
  if (!Seal(plan)) return false;
  if (!DropCapabilities()) return false;
  if (!SetNoNewPrivileges()) return false;
  return true;
}

struct GuestStart {
  const Plan* plan;
  uint32_t fences;
  GuestFailure failure;
};

int EnterGuest(void* start) {
  GuestStart* at = static_cast<GuestStart*>(start);
  RunGuest(*at->plan, at->fences, &at->failure);
}

// As vfork(2), on a stack of its own: no page table is copied, and init sleeps until the execve.
pid_t StartGuest(const Plan& plan, uint32_t fences) {
  alignas(16) static char stack[65536];
  GuestStart start{&plan, fences, {}};
  const pid_t guest = clone(EnterGuest, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
  if (start.failure.error != 0) Fail(start.failure.stage, start.failure.error, start.failure.syscall, plan.executable);
  return guest;
}

// True once the guest itself has ended.
bool Reap(pid_t guest, int* guestStatus) {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == guest) {
      *guestStatus = status;
      return true;
    }
    if (pid <= 0) return false;
  }
}

bool Watch(int events, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(events, EPOLL_CTL_ADD, fd, &event) == 0;
}

// Returns when the guest has ended (true) or the launcher is gone (false).
bool Supervise(pid_t guest, int launcher, int signals, int events, int* guestStatus) {
  // The guest, of the same uid, can set this process's RLIMIT_STACK to 0: from then on its stack cannot grow.
  volatile char room[32768];
  for (size_t at = 0; at < sizeof room; at += 1024) room[at] = 0;
  for (;;) {
    if (Reap(guest, guestStatus)) return true;
    // Not poll(2): that fails once the guest, of the same uid, has set this process's RLIMIT_NOFILE to 0.
    epoll_event event{};
    if (epoll_wait(events, &event, 1, -1) < 0 && errno != EINTR) return false;
    if (event.data.fd == signals) {
      signalfd_siginfo info;
      while (read(signals, &info, sizeof info) > 0) {
      }
    } else if (event.data.fd == launcher && event.events != 0) {
      Signal signal{};
      if (recv(launcher, &signal, sizeof signal, MSG_DONTWAIT) != sizeof signal) return false;
      kill(guest, signal.number);
    }
  }
}

} // namespace

void RunInit(const Plan& plan, Sources* sources, bool sourcesPinned, Fd launcher) {
  sigset_t blocked;
  sigfillset(&blocked);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  uint32_t fences = 0;
  if (!SetUp(plan, sources, sourcesPinned, launcher.get(), &fences)) _exit(1);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  Fd signals(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  Fd events(epoll_create1(EPOLL_CLOEXEC));
  if (!signals.valid() || !events.valid() || !Watch(events.get(), signals.get()) || !Watch(events.get(), launcher.get())) {
    Fail(Stage::kGuest, errno, "epoll");
    _exit(1);
  }
  const pid_t guest = StartGuest(plan, fences);
  if (guest < 0) {
    Fail(Stage::kGuest, errno, "clone");
    _exit(1);
  }
  // From here on nothing of the guest's streams or of the host's socket is open in init.
  close_range(0, 2, 0);
  close(kControlFd);
  GuestEnded ended{-1};
  const bool guestEnded = Supervise(guest, launcher.get(), signals.get(), events.get(), &ended.waitStatus);
  if (!plan.has(kPidNamespace)) KillOrphans();
  if (guestEnded) send(launcher.get(), &ended, sizeof ended, MSG_NOSIGNAL);
  // As process 1 of a pid namespace: the kernel kills and reaps all that is left in it before this exit is seen outside.
  _exit(0);
}

} // namespace ringfence
