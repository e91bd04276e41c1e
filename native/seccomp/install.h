// The last stage before execve: the filter, for this thread and all that it starts. no_new_privs must be set already.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ringfence {

// True when the kernel took the filter and says so when asked; else errno is set. Between this call and the guest only
// prctl, execve and exit_group may be called: every filter lets these through (src/seccomp/load.ts).
inline bool InstallFilter(const sock_filter *program, size_t length) {
  if (length == 0 || length > BPF_MAXINSNS) {
    errno = EINVAL;
    return false;
  }
  const sock_fprog filter = {static_cast<unsigned short>(length), const_cast<sock_filter *>(program)};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0) return false;
  const int mode = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
  if (mode == SECCOMP_MODE_FILTER) return true;
  if (mode >= 0) errno = EPROTO;
  return false;
}

} // namespace ringfence
