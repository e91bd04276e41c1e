#pragma once

#include <sys/types.h>

#include "fd.h"
#include "protocol.h"

namespace ringfence {

// Maps one id in the user namespace of `child`; `which` is uid_map or gid_map. An unprivileged writer of gid_map has to
// deny setgroups first.
// 0 or an errno.
int WriteIdMap(pid_t child, const char* which, uint32_t inside, uint32_t outside);
int DenySetgroups(pid_t child);

// A user namespace that shows `ownerUid:ownerGid` of a file system as `guestUid:guestGid`: what MOUNT_ATTR_IDMAP takes.
// 0 or an errno.
int MakeOwnerMap(uint32_t ownerUid, uint32_t ownerGid, uint32_t guestUid, uint32_t guestGid, Fd* userNamespace);

} // namespace ringfence
