#pragma once

#include "root.h"

namespace ringfence {

// Mounts a /proc that shows the sandbox's own pid namespace, with /proc/sys read-only and what tells about the kernel
// masked. Where the kernel refuses a fresh one (an outer /proc with masks) and the plan allows it, /proc stays empty:
// *mounted is false. Never the host's.
bool MountProc(const Plan& plan, const Root& root, bool* mounted);

} // namespace ringfence
