#include "root.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "mount_api.h"
#include "report.h"

namespace ringfence {
namespace {

constexpr size_t kMaxName = 255;

Fd NewTmpfs(uint64_t bytes, uint64_t inodes, const char* mode) {
  char size[24], count[24];
  snprintf(size, sizeof size, "%llu", static_cast<unsigned long long>(bytes));
  snprintf(count, sizeof count, "%llu", static_cast<unsigned long long>(inodes));
  const FsOption options[] = {{"size", size}, {"nr_inodes", count}, {"mode", mode}};
  return NewMount("tmpfs", options, 3, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

bool AttachAt(int mount, const char* path) {
  Fd target(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  return target.valid() && Attach(mount, target.get()) == 0;
}

int OpenBeneath(int directory, const char* name, uint64_t flags) {
  struct open_how how {};
  how.flags = flags | O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, directory, name, &how, sizeof how));
}

uint64_t DeviceOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_dev : 0;
}

bool IsOwn(const Root& root, int directory) {
  const uint64_t device = DeviceOf(directory);
  return device == root.device || device == root.scratchDevice;
}

const char* LastName(const char* path) { return strrchr(path, '/') + 1; }

Fd OpenParent(const Root& root, const char* path) {
  return Fd(OpenDirectory(root, path, static_cast<size_t>(LastName(path) - path)));
}

// The place a bind goes to: what is there already, or an empty file or directory of the same kind.
Fd OpenTarget(const Root& root, const char* path, bool directory) {
  if (directory) return Fd(OpenDirectory(root, path, strlen(path)));
  Fd parent = OpenParent(root, path);
  if (!parent.valid()) return parent;
  Fd target(OpenBeneath(parent.get(), LastName(path), 0));
  if (target.valid() || errno != ENOENT) return target;
  if (!IsOwn(root, parent.get())) {
    errno = EROFS;
    return Fd();
  }
  Fd made(openat(parent.get(), LastName(path), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0444));
  if (!made.valid()) return made;
  return Fd(OpenBeneath(parent.get(), LastName(path), 0));
}

bool AddBind(const Mount& mount, int source, const Root& root) {
  if (source < 0) return true;
  struct stat info;
  if (fstat(source, &info) != 0) return Fail(Stage::kView, errno, "fstat", mount.path);
  Fd target = OpenTarget(root, mount.path, S_ISDIR(info.st_mode));
  if (!target.valid()) return Fail(Stage::kView, errno, "openat2", mount.path);
  if (Attach(source, target.get()) != 0) return Fail(Stage::kView, errno, "move_mount", mount.path);
  return true;
}

// Every scratch directory is a directory of the one scratch tmpfs, so that one size bounds them all.
bool AddScratch(const Mount& mount, uint32_t index, const Root& root) {
  char name[16];
  snprintf(name, sizeof name, "%u", index);
  if (mkdirat(root.scratch.get(), name, 0700) != 0) return Fail(Stage::kView, errno, "mkdirat scratch", mount.path);
  if (fchmodat(root.scratch.get(), name, mount.mode, 0) != 0) return Fail(Stage::kView, errno, "fchmodat", mount.path);
  Fd tree(OpenTree(root.scratch.get(), name, OPEN_TREE_CLONE));
  if (!tree.valid()) return Fail(Stage::kView, errno, "open_tree scratch", mount.path);
  Fd target(OpenDirectory(root, mount.path, strlen(mount.path)));
  if (!target.valid()) return Fail(Stage::kView, errno, "openat2", mount.path);
  if (Attach(tree.get(), target.get()) != 0) return Fail(Stage::kView, errno, "move_mount scratch", mount.path);
  return true;
}

// The clone keeps the flags and the id map of what it is part of.
bool AddPin(const Mount& mount, const Root& root) {
  Fd target(OpenDirectory(root, mount.path, strlen(mount.path)));
  if (!target.valid()) return Fail(Stage::kView, errno, "openat2", mount.path);
  Fd tree(OpenTree(target.get(), "", OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_RECURSIVE));
  if (!tree.valid()) return Fail(Stage::kView, errno, "open_tree", mount.path);
  if (Attach(tree.get(), target.get()) != 0) return Fail(Stage::kView, errno, "move_mount", mount.path);
  return true;
}

bool AddFile(const Mount& mount, int parent) {
  Fd file(openat(parent, LastName(mount.path), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, mount.mode));
  if (!file.valid()) return Fail(Stage::kView, errno, "openat", mount.path);
  for (uint32_t done = 0; done < mount.sourceLength;) {
    const ssize_t written = write(file.get(), mount.source + done, mount.sourceLength - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Fail(Stage::kView, written < 0 ? errno : EIO, "write", mount.path);
    done += static_cast<uint32_t>(written);
  }
  return true;
}

bool AddOwnEntry(const Mount& mount, const Root& root) {
  if (mount.kind == MountKind::kDirectory) {
    Fd directory(OpenDirectory(root, mount.path, strlen(mount.path)));
    if (!directory.valid()) return Fail(Stage::kView, errno, "mkdirat", mount.path);
    return true;
  }
  Fd parent = OpenParent(root, mount.path);
  if (!parent.valid()) return Fail(Stage::kView, errno, "openat2", mount.path);
  if (!IsOwn(root, parent.get())) return Fail(Stage::kView, EROFS, "create", mount.path);
  if (mount.kind == MountKind::kFile) return AddFile(mount, parent.get());
  if (symlinkat(mount.source, parent.get(), LastName(mount.path)) != 0) return Fail(Stage::kView, errno, "symlinkat", mount.path);
  return true;
}

} // namespace

int OpenDirectory(const Root& root, const char* path, size_t length) {
  Fd at(fcntl(root.directory.get(), F_DUPFD_CLOEXEC, 0));
  for (const char* end = path + length; at.valid() && path < end;) {
    if (*path == '/') {
      path++;
      continue;
    }
    const size_t size = strcspn(path, "/");
    char name[kMaxName + 1];
    if (size > kMaxName) {
      errno = ENAMETOOLONG;
      return -1;
    }
    memcpy(name, path, size);
    name[size] = 0;
    path += size;
    Fd next(OpenBeneath(at.get(), name, O_DIRECTORY));
    if (!next.valid() && errno == ENOENT) {
      if (!IsOwn(root, at.get())) {
        errno = EROFS;
        return -1;
      }
      if (mkdirat(at.get(), name, 0755) != 0) return -1;
      next = Fd(OpenBeneath(at.get(), name, O_DIRECTORY));
    }
    at = static_cast<Fd&&>(next);
  }
  return at.release();
}

bool BuildRoot(const Plan& plan, Root* root) {
  // Nothing mounted here may travel back to the host's namespace.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return Fail(Stage::kRoot, errno, "mount MS_SLAVE", "/");
  root->directory = NewTmpfs(1u << 20, 4096, "755");
  if (!root->directory.valid()) return Fail(Stage::kRoot, errno, "fsmount", "tmpfs");
  root->scratch = NewTmpfs(plan.scratchBytes, plan.scratchInodes, "755");
  if (!root->scratch.valid()) return Fail(Stage::kRoot, errno, "fsmount", "scratch tmpfs");
  // Mounts can be cloned and built upon only while attached. Where does not matter: every source is pinned already, and
  // all of the old tree goes at once in Pivot.
  if (!AttachAt(root->scratch.get(), "/dev")) return Fail(Stage::kRoot, errno, "move_mount scratch", "/dev");
  if (!AttachAt(root->directory.get(), kRootPlace)) return Fail(Stage::kRoot, errno, "move_mount root", kRootPlace);
  root->device = DeviceOf(root->directory.get());
  root->scratchDevice = DeviceOf(root->scratch.get());
  return true;
}

bool BuildView(const Plan& plan, const Sources& sources, Root* root) {
  for (uint32_t i = 0; i < plan.mountCount; i++) {
    const Mount& mount = plan.mounts[i];
    bool added = false;
    if (mount.kind == MountKind::kBind) added = AddBind(mount, sources.mounts[i].get(), *root);
    else if (mount.kind == MountKind::kScratch) added = AddScratch(mount, i, *root);
    else if (mount.kind == MountKind::kPin) added = AddPin(mount, *root);
    else added = AddOwnEntry(mount, *root);
    if (!added) return false;
  }
  return true;
}

bool Pivot(Root* root) {
  if (SetMountFlags(root->directory.get(), MOUNT_ATTR_RDONLY) != 0) return Fail(Stage::kPivot, errno, "mount_setattr", "/");
  if (fchdir(root->directory.get()) != 0) return Fail(Stage::kPivot, errno, "fchdir", "/");
  // The old root ends up on top of the new one, at the same place, and is detached from there: no put_old directory.
  if (syscall(SYS_pivot_root, ".", ".") != 0) return Fail(Stage::kPivot, errno, "pivot_root", ".");
  if (umount2(".", MNT_DETACH) != 0) return Fail(Stage::kPivot, errno, "umount2", ".");
  if (chdir("/") != 0) return Fail(Stage::kPivot, errno, "chdir", "/");
  struct statfs info;
  struct stat at;
  if (statfs("/", &info) != 0 || stat("/", &at) != 0) return Fail(Stage::kPivot, errno, "statfs", "/");
  if (info.f_type != TMPFS_MAGIC || (info.f_flags & ST_RDONLY) == 0 || at.st_dev != root->device) {
    return Fail(Stage::kPivot, EROFS, "read back", "/");
  }
  return true;
}

} // namespace ringfence
