#include "id_map.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "control_file.h"

namespace ringfence {

int WriteIdMap(pid_t child, const char* which, uint32_t inside, uint32_t outside) {
  char path[40];
  char line[40];
  snprintf(path, sizeof path, "/proc/%d/%s", child, which);
  snprintf(line, sizeof line, "%u %u 1", inside, outside);
  return WriteControl(AT_FDCWD, path, line);
}

int DenySetgroups(pid_t child) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/setgroups", child);
  return WriteControl(AT_FDCWD, path, "deny");
}

int MakeOwnerMap(uint32_t ownerUid, uint32_t ownerGid, uint32_t guestUid, uint32_t guestGid, Fd* userNamespace) {
  // The process is there only to hold the namespace until its maps are written and a descriptor holds it.
  const pid_t holder = static_cast<pid_t>(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (holder < 0) return errno;
  if (holder == 0) {
    for (;;) pause();
  }
  int error = WriteIdMap(holder, "uid_map", ownerUid, guestUid);
  if (error == 0) error = WriteIdMap(holder, "gid_map", ownerGid, guestGid);
  if (error == 0) {
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/ns/user", holder);
    userNamespace->reset(open(path, O_RDONLY | O_CLOEXEC));
    if (!userNamespace->valid()) error = errno;
  }
  kill(holder, SIGKILL);
  while (waitpid(holder, nullptr, 0) < 0 && errno == EINTR) {
  }
  return error;
}

} // namespace ringfence
