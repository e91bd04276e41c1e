// Pins everything that is bound into the sandbox as detached mounts, before names can change under the launcher.
#pragma once

#include "fd.h"
#include "plan.h"

namespace ringfence {

struct Sources {
  Fd mounts[kMaxMounts]; // by index of the plan's mounts; invalid where the mount is no bind, or may be missing and is
};

// A privileged launcher pins them itself: only there can a mount be idmapped, and only it may traverse directories that
// the guest's uid may not. An unprivileged one leaves it to init, whose mount namespace is the only one it may clone from.
bool PinsSourcesItself();

bool PinSources(const Plan& plan, Sources* sources);

} // namespace ringfence
