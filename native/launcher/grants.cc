#include "grants.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "fd.h"
#include "report.h"

namespace ringfence {
namespace {

const char* const kOfTheKernel[] = {"proc",     "sysfs",      "cgroup",      "cgroup2", "debugfs",   "tracefs",   "securityfs", "configfs",
                                    "bpf",      "binfmt_misc", "efivarfs",   "pstore",  "selinuxfs", "smackfs",   "fusectl",    "mqueue",
                                    "nfsd",     "rpc_pipefs"};

bool IsBelow(const char* path, const char* directory) {
  const size_t length = strlen(directory);
  return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == 0 || directory[length - 1] == '/');
}

// "36 35 98:0 /root /mount/point options - type source options" (proc_pid_mountinfo(5)). Spaces in paths are escaped.
bool CheckLine(char* line, const char* root, const char* ownProc) {
  char* separator = strstr(line, " - ");
  if (separator == nullptr) return true;
  char* at = line;
  for (int field = 0; field < 4 && at != nullptr; field++) {
    at = strchr(at, ' ');
    if (at != nullptr) at++;
  }
  if (at == nullptr || at > separator) return true;
  char* type = separator + 3;
  type[strcspn(type, " ")] = 0;
  at[strcspn(at, " ")] = 0;
  if (!IsBelow(at, root) || IsBelow(at, ownProc)) return true;
  for (const char* each : kOfTheKernel) {
    if (strcmp(type, each) == 0) return Fail(Stage::kView, EPERM, "mountinfo", at);
  }
  return true;
}

} // namespace

bool CheckGrants(const char* mountinfo, const char* root, const char* ownProc) {
  Fd file(open(mountinfo, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Fail(Stage::kView, errno, "open", mountinfo);
  char buffer[16384];
  size_t have = 0;
  for (;;) {
    const ssize_t got = read(file.get(), buffer + have, sizeof buffer - 1 - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(Stage::kView, errno, "read", mountinfo);
    if (got == 0) return true;
    have += static_cast<size_t>(got);
    buffer[have] = 0;
    char* line = buffer;
    for (char* end; (end = strchr(line, '\n')) != nullptr; line = end + 1) {
      *end = 0;
      if (!CheckLine(line, root, ownProc)) return false;
    }
    have = static_cast<size_t>(buffer + have - line);
    memmove(buffer, line, have);
    // A line longer than this has paths beyond PATH_MAX: nothing that can be judged.
    if (have == sizeof buffer - 1) return Fail(Stage::kView, ENAMETOOLONG, "read", mountinfo);
  }
}

} // namespace ringfence
