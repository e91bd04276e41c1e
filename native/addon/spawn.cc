#include "spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <utility>

#include "protocol.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace ringfence {
namespace {

// P_PIDFD of waitid(2), which headers older than glibc 2.36 do not name.
constexpr idtype_t kByPidfd = static_cast<idtype_t>(3);
constexpr int kLauncherDescriptors = kPlanFd + 1;

// What the launcher is born with, by number. Closed in the host as soon as the launcher has its copies.
struct LauncherEnds {
  Fd at[kLauncherDescriptors];
};

bool Fail(Failure* failure, const char* syscall) {
  *failure = {syscall, errno};
  return false;
}

// Moves a descriptor out of the numbers 0 to 4. A host that closed its own stdin gets 0 from pipe2: as a source it
// would be overwritten by the dup2 before it, and as the host's end it would pass for a standard stream.
bool MoveUp(Fd* descriptor, Failure* failure) {
  if (descriptor->get() >= kLauncherDescriptors) return true;
  Fd moved(fcntl(descriptor->get(), F_DUPFD_CLOEXEC, kLauncherDescriptors));
  if (!moved.valid()) return Fail(failure, "fcntl");
  *descriptor = std::move(moved);
  return true;
}

bool SetNonBlocking(const Fd& descriptor, Failure* failure) {
  if (fcntl(descriptor.get(), F_SETFL, O_NONBLOCK) < 0) return Fail(failure, "fcntl");
  return true;
}

// pipe2 with O_NONBLOCK would set both ends, and the guest expects streams that block.
bool OpenPipe(Fd* read_end, Fd* write_end, const Fd& host_end, Failure* failure) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return Fail(failure, "pipe2");
  *read_end = Fd(ends[0]);
  *write_end = Fd(ends[1]);
  return MoveUp(read_end, failure) && MoveUp(write_end, failure) && SetNonBlocking(host_end, failure);
}

bool OpenControl(Fd* host_end, Fd* launcher_end, Failure* failure) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return Fail(failure, "socketpair");
  *host_end = Fd(ends[0]);
  *launcher_end = Fd(ends[1]);
  return MoveUp(host_end, failure) && MoveUp(launcher_end, failure) && SetNonBlocking(*host_end, failure);
}

// MFD_NOEXEC_SEAL: vm.memfd_noexec=2 refuses a memfd without it; kernels before 6.3 refuse the flag.
bool WritePlan(const uint8_t* plan, size_t size, Fd* descriptor, Failure* failure) {
  const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  long fd = syscall(SYS_memfd_create, "ringfence-plan", flags | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = syscall(SYS_memfd_create, "ringfence-plan", flags);
  if (fd < 0) return Fail(failure, "memfd_create");
  *descriptor = Fd(static_cast<int>(fd));
  if (!MoveUp(descriptor, failure)) return false;
  // pwrite leaves the offset at 0, where the launcher starts to read.
  for (size_t done = 0; done < size;) {
    const ssize_t written = pwrite(descriptor->get(), plan + done, size - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Fail(failure, "pwrite");
    done += static_cast<size_t>(written);
  }
  if (fcntl(descriptor->get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
    return Fail(failure, "fcntl");
  }
  return true;
}

// An empty signal mask and default dispositions: Node ignores SIGPIPE and blocks signals in some threads, and both
// would be inherited through exec. A session of its own keeps a terminal's Ctrl-C from the launcher.
int SetAttributes(posix_spawnattr_t* attributes) {
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  int error = posix_spawnattr_setsigmask(attributes, &none);
  if (error == 0) error = posix_spawnattr_setsigdefault(attributes, &all);
  if (error == 0) {
    error = posix_spawnattr_setflags(attributes,
                                     POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }
  return error;
}

int SpawnWith(const char* launcher, const LauncherEnds& ends, posix_spawn_file_actions_t* actions,
              posix_spawnattr_t* attributes, pid_t* pid) {
  for (int number = 0; number < kLauncherDescriptors; number++) {
    const int error = posix_spawn_file_actions_adddup2(actions, ends.at[number].get(), number);
    if (error != 0) return error;
  }
  const int error = SetAttributes(attributes);
  if (error != 0) return error;
  char name[] = "ringfence-launcher";
  char* argv[] = {name, nullptr};
  char* environment[] = {nullptr};
  return posix_spawn(pid, launcher, actions, attributes, argv, environment);
}

bool SpawnLauncher(const char* launcher, const LauncherEnds& ends, pid_t* pid, Failure* failure) {
  posix_spawn_file_actions_t actions;
  int error = posix_spawn_file_actions_init(&actions);
  if (error == 0) {
    posix_spawnattr_t attributes;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
      error = SpawnWith(launcher, ends, &actions, &attributes, pid);
      posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
  }
  if (error != 0) *failure = {"posix_spawn", error};
  return error == 0;
}

bool IsOurChild(idtype_t kind, id_t id) {
  siginfo_t info{};
  return waitid(kind, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// A process number stays ours until it is reaped; with SIGCHLD ignored in the host the kernel does that by itself, and
// the number may be somebody else's by now.
bool OpenPidfd(pid_t pid, Fd* pidfd, Failure* failure) {
  const long fd = syscall(SYS_pidfd_open, pid, 0);
  if (fd >= 0) {
    *pidfd = Fd(static_cast<int>(fd));
    if (!MoveUp(pidfd, failure)) return false;
    if (!IsOurChild(kByPidfd, static_cast<id_t>(pidfd->get())) && errno == ECHILD) pidfd->reset();
    return true;
  }
  return errno == ESRCH || Fail(failure, "pidfd_open");
}

void KillAndReapByNumber(pid_t pid) {
  if (!IsOurChild(P_PID, static_cast<id_t>(pid))) return;
  kill(pid, SIGKILL);
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) < 0 && errno == EINTR) {}
}

} // namespace

bool Spawn(const char* launcher, const uint8_t* plan, size_t plan_size, Spawned* spawned, Failure* failure) {
  {
    LauncherEnds ends;
    if (!OpenPipe(&ends.at[0], &spawned->guest_stdin, spawned->guest_stdin, failure) ||
        !OpenPipe(&spawned->guest_stdout, &ends.at[1], spawned->guest_stdout, failure) ||
        !OpenPipe(&spawned->guest_stderr, &ends.at[2], spawned->guest_stderr, failure) ||
        !OpenControl(&spawned->control, &ends.at[kControlFd], failure) ||
        !WritePlan(plan, plan_size, &ends.at[kPlanFd], failure) ||
        !SpawnLauncher(launcher, ends, &spawned->pid, failure)) {
      return false;
    }
  }
  // After the launcher's ends are closed: their numbers are free, so that this does not end in EMFILE.
  if (OpenPidfd(spawned->pid, &spawned->pidfd, failure)) return true;
  KillAndReapByNumber(spawned->pid);
  return false;
}

bool Reap(const Fd& pidfd, ExitStatus* status) {
  siginfo_t info{};
  int result;
  do {
    result = waitid(kByPidfd, static_cast<id_t>(pidfd.get()), &info, WEXITED | WNOHANG);
  } while (result < 0 && errno == EINTR);
  if (result < 0) return errno != EAGAIN; // ECHILD: reaped by the kernel or by another part of the host
  if (info.si_pid == 0) return false;
  if (info.si_code == CLD_EXITED) {
    status->exit_code = info.si_status;
  } else {
    status->signal = info.si_status;
  }
  return true;
}

void ReapSoon(const Fd& pidfd) {
  if (!pidfd.valid()) return;
  pollfd waiting{pidfd.get(), POLLIN, 0};
  poll(&waiting, 1, 2000);
  ExitStatus ignored;
  Reap(pidfd, &ignored);
}

void KillByPidfd(const Fd& pidfd) {
  if (pidfd.valid()) syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
}

} // namespace ringfence
