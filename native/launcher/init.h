// Process 1 of the sandbox: builds it from inside, starts the guest, reaps, and tells the launcher how the guest ended.
#pragma once

#include "fd.h"
#include "plan.h"
#include "sources.h"

namespace ringfence {

// Launcher to init, twice: the ids are mapped, build the sandbox; then, everything outside is in place, start the guest.
struct Go {
  uint32_t fences; // the second time: what the launcher verified
};

// Launcher to init, any number of times.
struct Signal {
  int32_t number; // for the guest process
};

// Init to launcher, once.
struct GuestEnded {
  int32_t waitStatus;
};

// Never returns. `launcher` is init's end of their socket; `sources` are pinned already, or are pinned here.
[[noreturn]] void RunInit(const Plan& plan, Sources* sources, bool sourcesPinned, Fd launcher);

} // namespace ringfence
