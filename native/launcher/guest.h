#pragma once

#include "plan.h"

namespace ringfence {

// The last stages, in the process that becomes the guest. Never returns: execve or exit.
[[noreturn]] void RunGuest(const Plan& plan, uint32_t fences);

} // namespace ringfence
