// Theory of operation. The host starts one launcher per sandbox, with an empty environment, the guest's pipes at 0-2, the
// control socket at 3 and the plan at 4. The launcher stays outside: it keeps the rights of the host, makes the run's
// cgroup, forks init into new namespaces, maps its ids, and then only watches. Init, process 1 inside, has every
// capability over its own namespaces and none over the host's; it builds the sandbox around itself, drops the
// capabilities, forks the guest and reaps. The guest runs the last stages itself and becomes the command.
//
// Who dies with whom: the host's death is an end of file on the control socket; the launcher's death kills init
// (PR_SET_PDEATHSIG, and the end of file on their socket); init's death kills the whole pid namespace. The launcher reads
// and removes the cgroup after that and exits last, so that its exit means: nothing of the run is left.
//
// Each stage reports its own failure to the host, and the guest's code starts only after the last one.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "control_file.h"
#include "init.h"
#include "namespaces.h"
#include "plan.h"
#include "report.h"
#include "sources.h"
#include "supervise.h"

namespace ringfence {
namespace {

constexpr const char kGuestOomScore[] = "500";

// The guest needs a limit of 1 (see guest.cc), and only here can one that is 0 be raised, by a privileged launcher.
void RaiseCoreLimit() {
  const rlimit one{1, 1};
  setrlimit(RLIMIT_CORE, &one);
}

bool CloseInherited() {
  if (close_range(kPlanFd + 1, ~0u, 0) != 0) return Fail(Stage::kDescriptors, errno, "close_range");
  if (fcntl(kControlFd, F_SETFD, FD_CLOEXEC) != 0) return Fail(Stage::kDescriptors, errno, "fcntl", "control");
  return true;
}

// A pipe belongs to its maker; the guest opens /dev/stdin and /dev/stdout again by name, which asks for its own rights.
bool GiveStreams(const Plan& plan) {
  if (plan.outsideUid == geteuid()) return true;
  for (int fd = 0; fd <= 2; fd++) {
    struct stat info;
    if (fstat(fd, &info) != 0) return Fail(Stage::kDescriptors, errno, "fstat", "standard stream");
    if (S_ISFIFO(info.st_mode) && fchown(fd, plan.outsideUid, plan.outsideGid) != 0) {
      return Fail(Stage::kDescriptors, errno, "fchown", "standard stream");
    }
  }
  return true;
}

// A host that is exempt from the machine's OOM killer must not hand that on: the guest would outlive its own limit.
bool SetOomScore(pid_t init) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/oom_score_adj", init);
  const int error = WriteControl(AT_FDCWD, path, kGuestOomScore);
  if (error != 0) return Fail(Stage::kAttach, error, "write", path);
  return true;
}

bool SendGo(const Sandbox& sandbox, const Go& go) {
  // An init that is gone has said why.
  return send(sandbox.socket.get(), &go, sizeof go, MSG_NOSIGNAL) == sizeof go;
}

// What only the outside can do. Init builds the sandbox meanwhile, and starts the guest only after the second go.
bool Admit(const Plan& plan, RunCgroup* cgroup, const Sandbox& sandbox) {
  Go go{};
  if (!MapIds(plan, sandbox.init) || !SendGo(sandbox, go)) return false;
  if (!VerifyNamespaces(plan, sandbox.init, &go.fences)) return false;
  if (!SetOomScore(sandbox.init)) return false;
  if (plan.cgroupVersion == 1 && !CreateCgroup(plan, cgroup)) return false;
  if (!AttachInit(plan, *cgroup, sandbox.init, &go.fences)) return false;
  return SendGo(sandbox, go);
}

// False when init was never started; *ended is filled otherwise.
bool RunSandbox(const Plan& plan, RunCgroup* cgroup, Record* ended) {
  Sources sources;
  const bool pinned = PinsSourcesItself();
  if (pinned && plan.has(kMountNamespace) && !PinSources(plan, &sources)) return false;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return Fail(Stage::kNamespaces, errno, "socketpair");
  Sandbox sandbox;
  sandbox.socket.reset(pair[0]);
  Fd initSocket(pair[1]);
  sandbox.init = CloneInit(plan, CloneIntoFd(*cgroup), &sandbox.pidfd);
  if (sandbox.init < 0) return false;
  if (sandbox.init == 0) {
    sandbox.socket.reset();
    RunInit(plan, &sources, pinned, static_cast<Fd&&>(initSocket));
  }
  initSocket.reset();
  // The launcher holds nothing of the guest's: neither its streams nor what is mounted in it.
  for (Fd& mount : sources.mounts) mount.reset();
  close_range(0, 2, 0);
  if (!Admit(plan, cgroup, sandbox)) KillSandbox(sandbox, *cgroup);
  Supervise(plan, &sandbox, *cgroup, ended);
  return true;
}

int Main() {
  static Plan plan; // large, and there is one
  if (!ReadPlan(&plan) || !CloseInherited() || !GiveStreams(plan)) return 1;
  RaiseCoreLimit();
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return Fail(Stage::kDescriptors, errno, "prctl PR_SET_CHILD_SUBREAPER"), 1;
  Record ended{};
  ended.kind = static_cast<uint32_t>(RecordKind::kEnded);
  ended.waitStatus = -1;
  ended.cpuUserUs = ended.cpuSystemUs = ended.peakMemoryBytes = ended.peakPids = ended.oomKills = ended.pidsRefused = kUnknown;
  RunCgroup cgroup;
  // v2: init is born inside. v1: init is moved in once it lives.
  const bool created = plan.cgroupVersion != 2 || CreateCgroup(plan, &cgroup);
  const bool started = created && RunSandbox(plan, &cgroup, &ended);
  ReadCgroup(cgroup, &ended);
  if (ended.oomKills != kUnknown && ended.oomKills > 0 && ended.cause == static_cast<uint32_t>(EndCause::kInitDied)) {
    ended.cause = static_cast<uint32_t>(EndCause::kOutOfMemory);
  }
  if (!RemoveCgroup(&cgroup)) {
    ended.error = errno;
    snprintf(ended.detail, sizeof ended.detail, "rmdir %s", plan.cgroupName);
  }
  if (started) SendEnded(ended);
  return started ? 0 : 1;
}

} // namespace
} // namespace ringfence

int main() { return ringfence::Main(); }
