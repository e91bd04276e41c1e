#include "supervise.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init.h"
#include "orphans.h"

namespace ringfence {
namespace {

constexpr int kTickMs = 20;      // how often total cpu time is compared with its limit
constexpr int kOomTickMs = 5;    // between the kernel's notice (v1) and its counter

uint64_t NowMs() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

struct Watch {
  const Plan& plan;
  Sandbox* sandbox;
  const RunCgroup& cgroup;
  Record* ended;
  uint64_t deadline;
  bool killed = false;
  bool hostGone = false;
  bool oomNoticed = false;

  // First cause wins.
  void End(EndCause cause) {
    if (!killed) ended->cause = static_cast<uint32_t>(cause);
    killed = true;
    KillSandbox(*sandbox, cgroup);
  }

  void ReadCommand() {
    Command command{};
    const ssize_t got = recv(kControlFd, &command, sizeof command, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got != sizeof command) {
      hostGone = true;
      return End(EndCause::kHostGone);
    }
    if (command.kind == static_cast<uint32_t>(CommandKind::kKill)) return End(EndCause::kKilled);
    const Signal signal{static_cast<int32_t>(command.value)};
    send(sandbox->socket.get(), &signal, sizeof signal, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // False once init will say no more.
  bool ReadInit() {
    GuestEnded message{};
    const ssize_t got = recv(sandbox->socket.get(), &message, sizeof message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got != sizeof message) return false;
    ended->waitStatus = message.waitStatus;
    if (!killed) ended->cause = static_cast<uint32_t>(EndCause::kGuestEnded);
    killed = true; // init ends by itself now; nothing later may claim the cause
    return true;
  }

  // v1 kills one process and leaves the rest of the sandbox running.
  void CheckMemory() {
    const uint64_t kills = ReadOomKills(cgroup);
    if (kills != kUnknown && kills > 0) End(EndCause::kOutOfMemory);
  }

  void CheckCpu() {
    const uint64_t used = ReadCpuTimeUs(cgroup);
    if (used != kUnknown && used / 1000 >= plan.cpuTimeMs) End(EndCause::kCpuLimit);
  }

  int TimeoutMs() const {
    if (killed) return -1;
    int timeout = -1;
    if (plan.deadlineMs != kUnlimited) {
      const uint64_t now = NowMs();
      const uint64_t left = now >= deadline ? 0 : deadline - now;
      timeout = left > 3600000 ? 3600000 : static_cast<int>(left);
    }
    if (plan.cpuTimeMs != kUnlimited && (timeout < 0 || timeout > kTickMs)) timeout = kTickMs;
    if (oomNoticed && (timeout < 0 || timeout > kOomTickMs)) timeout = kOomTickMs;
    return timeout;
  }

  void Run() {
    bool initSpeaks = true;
    for (;;) {
      pollfd fds[] = {{sandbox->pidfd.get(), POLLIN, 0},
                      {hostGone ? -1 : kControlFd, POLLIN, 0},
                      {initSpeaks ? sandbox->socket.get() : -1, POLLIN, 0},
                      {cgroup.oomEvent.get(), POLLIN, 0}};
      if (poll(fds, 4, TimeoutMs()) < 0 && errno != EINTR) return End(EndCause::kInitDied);
      if (fds[2].revents != 0) initSpeaks = ReadInit();
      if (fds[0].revents != 0) return;
      if (fds[1].revents != 0) ReadCommand();
      if (fds[3].revents != 0) {
        uint64_t count;
        if (read(cgroup.oomEvent.get(), &count, sizeof count) > 0) oomNoticed = true;
      }
      if (killed) continue;
      if (oomNoticed) CheckMemory();
      if (!killed && plan.cpuTimeMs != kUnlimited) CheckCpu();
      if (!killed && plan.deadlineMs != kUnlimited && NowMs() >= deadline) End(EndCause::kDeadline);
    }
  }
};

// An init that was killed (a limit that the guest took from it, an operator) takes the guest with it, by the same signal.
void Reap(const Sandbox& sandbox, Record* ended) {
  rusage usage{};
  siginfo_t info{};
  // The raw call: libc's waitid has no usage.
  while (syscall(SYS_waitid, P_PID, sandbox.init, &info, WEXITED, &usage) < 0 && errno == EINTR) {
  }
  const bool unexpected = ended->cause == static_cast<uint32_t>(EndCause::kInitDied);
  if (unexpected && (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)) ended->waitStatus = info.si_status;
  ended->cpuUserUs = static_cast<uint64_t>(usage.ru_utime.tv_sec) * 1000000 + static_cast<uint64_t>(usage.ru_utime.tv_usec);
  ended->cpuSystemUs = static_cast<uint64_t>(usage.ru_stime.tv_sec) * 1000000 + static_cast<uint64_t>(usage.ru_stime.tv_usec);
}

} // namespace

void KillSandbox(const Sandbox& sandbox, const RunCgroup& cgroup) {
  syscall(SYS_pidfd_send_signal, sandbox.pidfd.get(), SIGKILL, nullptr, 0);
  KillCgroup(cgroup);
}

void Supervise(const Plan& plan, Sandbox* sandbox, const RunCgroup& cgroup, Record* ended) {
  Watch watch{plan, sandbox, cgroup, ended, NowMs() + plan.deadlineMs};
  ended->cause = static_cast<uint32_t>(EndCause::kInitDied);
  watch.Run();
  watch.ReadInit(); // what init said with its last breath
  Reap(*sandbox, ended);
  // Of an init that was killed: the launcher is a subreaper too.
  if (!plan.has(kPidNamespace)) KillOrphans();
}

} // namespace ringfence
