#pragma once

#include "plan.h"

namespace ringfence {

// What the guest could not report any more: the filter may refuse it the socket. Init, whose memory it shares until the
// execve, does it then.
struct GuestFailure {
  Stage stage;
  int error;
  const char* syscall;
};

// The last stages, in the process that becomes the guest. Never returns: execve or exit.
[[noreturn]] void RunGuest(const Plan& plan, uint32_t fences, GuestFailure* failure);

} // namespace ringfence
