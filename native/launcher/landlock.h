// Landlock: the kernel's rules about files, TCP, signals and abstract sockets, bound to the guest's own credentials and so
// to everything it starts. The second wall behind the mount and network namespaces, and the first where there are none.
#pragma once

#include "plan.h"

namespace ringfence {

// Restricts this process as the plan says. *abi becomes the version that is in force: 0 where the plan wants none or the
// kernel has none that is of use, which is no failure. Needs no_new_privs.
bool ApplyLandlock(const Plan& plan, int* abi);

} // namespace ringfence
