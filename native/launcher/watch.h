// Packet sockets that see what the host's listeners do not: attempts that the kernel refuses, and connections it loses.
#pragma once

#include "fd.h"
#include "plan.h"

namespace ringfence {

// The first packet of every attempt to leave that no listener of the plan takes. Not open when one could not be had.
Fd OpenWatch(const Plan& plan);

// What begins a connection to a listener of the plan: counted by the kernel, read by nobody.
Fd OpenCounter(const Plan& plan);

} // namespace ringfence
