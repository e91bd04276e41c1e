// The mount calls that the launcher uses, by descriptor only.
#pragma once

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"

namespace ringfence {

inline int OpenTree(int directory, const char* path, unsigned flags) {
  return static_cast<int>(syscall(SYS_open_tree, directory, path, flags | OPEN_TREE_CLOEXEC));
}

// Attaches a detached mount on the very directory or file behind `target`, whatever its name means by now.
inline int Attach(int mount, int target) {
  return static_cast<int>(
      syscall(SYS_move_mount, mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

inline int SetMountFlags(int mount, uint64_t flags) {
  struct mount_attr attributes {};
  attributes.attr_set = flags;
  return static_cast<int>(syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH, &attributes, sizeof attributes));
}

struct FsOption {
  const char* key;
  const char* value;
};

// A new, detached mount of a file system. Invalid with errno set.
inline Fd NewMount(const char* type, const FsOption* options, int count, unsigned flags) {
  Fd context(static_cast<int>(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC)));
  if (!context.valid()) return Fd();
  for (int i = 0; i < count; i++) {
    if (syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, options[i].key, options[i].value, 0) != 0) return Fd();
  }
  if (syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return Fd();
  return Fd(static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, flags)));
}

} // namespace ringfence
