// The launcher's watch over a started sandbox: commands, deadline, memory and cpu limits, the end.
#pragma once

#include <sys/types.h>

#include "cgroup.h"
#include "fd.h"
#include "plan.h"

namespace ringfence {

struct Sandbox {
  pid_t init = -1;
  Fd pidfd;
  Fd socket; // to init
};

// Watches until init is gone, then reaps it. *ended gets cause, waitStatus and the usage of the whole pid namespace.
void Supervise(const Plan& plan, Sandbox* sandbox, const RunCgroup& cgroup, Record* ended);

// Ends everything: init and with it its pid namespace.
void KillSandbox(const Sandbox& sandbox, const RunCgroup& cgroup);

} // namespace ringfence
