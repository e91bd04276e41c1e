#pragma once

namespace ringfence {

// Empties every capability set, the bounding set included.
bool DropCapabilities();
bool SetNoNewPrivileges();

// Reads all of it back from the kernel.
bool HasNoPrivileges();

} // namespace ringfence
