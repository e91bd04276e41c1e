// The inside of the allowlisted network: every address is local, and the sockets that answer belong to the host.
#pragma once

#include "plan.h"

namespace ringfence {

// Needs loopback up and CAP_NET_ADMIN, CAP_NET_RAW and CAP_NET_BIND_SERVICE over the network namespace.
bool OpenEgress(const Plan& plan);

// The plan's ports on 127.0.0.1 and nothing else, for a guest without an allowlist that somebody attends to.
bool OpenListeners(const Plan& plan);

} // namespace ringfence
