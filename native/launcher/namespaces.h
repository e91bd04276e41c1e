// Init's namespaces: made with one clone3, then compared with the launcher's own.
#pragma once

#include <sys/types.h>

#include "fd.h"
#include "plan.h"

namespace ringfence {

// Forks init into the plan's namespaces (and, where cgroupFd is not -1, into that cgroup). As fork(2): 0 in init.
// -1 after a failure was reported.
pid_t CloneInit(const Plan& plan, int cgroupFd, Fd* pidfd);

// Compares init's namespaces with the launcher's; adds the fences that hold to *fences. Init must still be dumpable.
bool VerifyNamespaces(const Plan& plan, pid_t init, uint32_t* fences);

// Writes init's uid and gid maps.
bool MapIds(const Plan& plan, pid_t init);

} // namespace ringfence
