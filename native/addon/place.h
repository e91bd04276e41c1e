// Moving this process to the cgroup that it is in already: plain system calls, no JavaScript.
#pragma once

namespace ringfence {

// Writes our own process number into `procs` while /proc/self/cgroup reads `place`: whoever moved this process meanwhile
// is not undone. False when it reads otherwise, or the write failed. Waits for the kernel: never on the event loop.
bool MoveToOwnPlace(const char* procs, const char* place);

} // namespace ringfence
