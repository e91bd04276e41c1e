#include "sources.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "id_map.h"
#include "report.h"

namespace ringfence {
namespace {

constexpr uint32_t kDeviceMajor = 1; // mem(4): null, zero, full, random, urandom

struct OwnerMap {
  uid_t uid;
  gid_t gid;
  Fd userNamespace;
};
constexpr int kMaxOwners = 16;

struct OwnerMaps {
  OwnerMap maps[kMaxOwners];
  int count = 0;
};

// The host resolved every symlink; one that is there now was put there since, and is refused (ELOOP).
int OpenSource(const char* path) {
  struct open_how how {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

// Finds or makes the map for an owner; null with errno set when it cannot be made.
const OwnerMap* FindOwnerMap(const Plan& plan, const struct stat& owner, OwnerMaps* maps) {
  for (int i = 0; i < maps->count; i++) {
    if (maps->maps[i].uid == owner.st_uid && maps->maps[i].gid == owner.st_gid) return &maps->maps[i];
  }
  if (maps->count == kMaxOwners) {
    errno = E2BIG;
    return nullptr;
  }
  OwnerMap* map = &maps->maps[maps->count];
  const int error = MakeOwnerMap(owner.st_uid, owner.st_gid, plan.outsideUid, plan.outsideGid, &map->userNamespace);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  map->uid = owner.st_uid;
  map->gid = owner.st_gid;
  maps->count++;
  return map;
}

int SetAttributes(int mount, struct mount_attr* attributes) {
  return static_cast<int>(syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH | AT_RECURSIVE, attributes, sizeof *attributes));
}

bool ApplyIdMap(const Plan& plan, const Mount& mount, const struct stat& owner, int detached, OwnerMaps* maps) {
  const OwnerMap* map = FindOwnerMap(plan, owner, maps);
  if (map != nullptr) {
    struct mount_attr attributes {};
    attributes.attr_set = MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<uint64_t>(map->userNamespace.get());
    if (SetAttributes(detached, &attributes) == 0) return true;
  }
  const int error = errno;
  if ((mount.flags & kIdMapOptional) != 0) return true;
  return Fail(Stage::kSources, error, map == nullptr ? "make the owner's map of" : "mount_setattr idmap", mount.source);
}

bool PinSource(const Plan& plan, const Mount& mount, OwnerMaps* maps, Fd* out) {
  Fd source(OpenSource(mount.source));
  if (!source.valid()) {
    if (errno == ENOENT && (mount.flags & kMayBeMissing) != 0) return true;
    return Fail(Stage::kSources, errno, "openat2", mount.source);
  }
  struct stat info;
  if (fstat(source.get(), &info) != 0) return Fail(Stage::kSources, errno, "fstat", mount.source);
  const bool device = (mount.flags & kDeviceNode) != 0;
  if (device && !(S_ISCHR(info.st_mode) && info.st_rdev == makedev(kDeviceMajor, mount.mode))) {
    return Fail(Stage::kSources, ENODEV, "fstat", mount.source);
  }
  Fd detached(static_cast<int>(syscall(SYS_open_tree, source.get(), "",
                                       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE)));
  if (!detached.valid()) return Fail(Stage::kSources, errno, "open_tree", mount.source);
  if ((mount.flags & kIdMapped) != 0 && !ApplyIdMap(plan, mount, info, detached.get(), maps)) return false;
  struct mount_attr attributes {};
  attributes.attr_set = MOUNT_ATTR_NOSUID;
  if (!device) attributes.attr_set |= MOUNT_ATTR_NODEV;
  // A device can be written to through a read-only mount; only its node cannot be changed.
  if ((mount.flags & kWritable) == 0) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  attributes.propagation = MS_PRIVATE; // what the host mounts later below the source must not show up inside
  if (SetAttributes(detached.get(), &attributes) != 0) return Fail(Stage::kSources, errno, "mount_setattr", mount.source);
  *out = static_cast<Fd&&>(detached);
  return true;
}

} // namespace

bool PinsSourcesItself() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  return (data[0].effective & (1u << CAP_SYS_ADMIN)) != 0;
}

bool PinSources(const Plan& plan, Sources* sources) {
  OwnerMaps maps;
  for (uint32_t i = 0; i < plan.mountCount; i++) {
    const Mount& mount = plan.mounts[i];
    if (mount.kind == MountKind::kBind && !PinSource(plan, mount, &maps, &sources->mounts[i])) return false;
  }
  return true;
}

} // namespace ringfence
