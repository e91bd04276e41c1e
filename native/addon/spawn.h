// Starting the launcher: plain system calls, no JavaScript.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "fd.h"

namespace ringfence {

struct Failure {
  const char* syscall = nullptr;
  int error = 0;
};

// The host's side of one launch. Everything is close-on-exec; the guest's streams and control are non-blocking.
struct Spawned {
  pid_t pid = -1;
  Fd pidfd; // not open when the kernel had reaped the launcher already (SIGCHLD ignored)
  Fd control;
  Fd guest_stdin;
  Fd guest_stdout;
  Fd guest_stderr;
};

struct ExitStatus {
  int exit_code = -1; // -1: not known, or ended by a signal
  int signal = 0;     // 0: none
};

// False with *failure filled in; nothing is left behind then.
bool Spawn(const char* launcher, const uint8_t* plan, size_t plan_size, Spawned* spawned, Failure* failure);

// False while the launcher runs. A launcher that somebody else reaped counts as ended, with an unknown status.
bool Reap(const Fd& pidfd, ExitStatus* status);

// Waits for a launcher that was just killed, or has just lost its lifeline, for two seconds at most.
void ReapSoon(const Fd& pidfd);

// SIGKILL by pidfd: can never reach a process that got the number later.
void KillByPidfd(const Fd& pidfd);

} // namespace ringfence
