#pragma once

namespace ringfence {

// Refuses grants in which a file system of the kernel is mounted (the host's /proc or /sys at another place): binds are
// recursive, and no path says what is mounted below it. `mountinfo` is this process's own; only what is below `root`
// counts, and `ownProc` there is the sandbox's.
bool CheckGrants(const char* mountinfo, const char* root, const char* ownProc);

} // namespace ringfence
