// The sandbox's own file tree, built on a tmpfs of its own and entered for good.
#pragma once

#include "fd.h"
#include "plan.h"
#include "sources.h"

namespace ringfence {

// Where the new root is attached until Pivot.
constexpr const char kRootPlace[] = "/usr";

struct Root {
  Fd directory;       // the new root, a tmpfs
  Fd scratch;         // the size-limited tmpfs behind every scratch directory
  uint64_t device = 0;
  uint64_t scratchDevice = 0;
};

bool BuildRoot(const Plan& plan, Root* root);

// Puts every mount of the plan in, in the plan's order.
bool BuildView(const Plan& plan, const Sources& sources, Root* root);

// Makes the root read-only, enters it and detaches everything else.
bool Pivot(Root* root);

// Walks to `path` below `directory` without following any symlink, and makes missing directories where the file system
// is the sandbox's own. -1 with errno set; EROFS where something is missing on a file system of the host.
int OpenDirectory(const Root& root, const char* path, size_t length);

} // namespace ringfence
