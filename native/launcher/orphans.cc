#include "orphans.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/wait.h>

#include "control_file.h"

namespace ringfence {
namespace {

constexpr int kMaxRounds = 100000; // against a kernel that lists children it does not let be killed

// False where this kernel does not list them.
bool KillChildren() {
  char text[4096]; // as many as fit; the others are in the next round's
  if (ReadControl(AT_FDCWD, "/proc/thread-self/children", text, sizeof text) != 0) return false;
  for (char* at = text; *at != 0;) {
    char* end = nullptr;
    const long pid = strtol(at, &end, 10);
    if (end == at) break;
    // A number that was cut short is no child's, or is another's: waitid would know, and costs as much as the next round.
    if (pid > 1 && *end == ' ') kill(static_cast<pid_t>(pid), SIGKILL);
    at = end;
  }
  return true;
}

} // namespace

void KillOrphans() {
  for (int round = 0; round < kMaxRounds; round++) {
    if (!KillChildren()) return;
    // One of them dies for certain; what it leaves is a child of this process before it can be reaped, and so in the next list.
    pid_t reaped = waitpid(-1, nullptr, 0);
    while (reaped > 0) reaped = waitpid(-1, nullptr, WNOHANG);
    if (reaped < 0 && errno == ECHILD) return;
  }
}

} // namespace ringfence
