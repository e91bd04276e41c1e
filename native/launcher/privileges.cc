#include "privileges.h"

#include <cerrno>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report.h"

namespace ringfence {
namespace {

constexpr int kMaxCapability = 63;

// Without them uid 0 has no meaning any more, and no later execve or setuid brings a capability back.
constexpr unsigned kSecureBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                                 SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

} // namespace

bool DropCapabilities() {
  // Where the process never had them (no user namespace, ordinary user) there is nothing to drop: EPERM, and
  // HasNoPrivileges decides.
  if (prctl(PR_SET_SECUREBITS, kSecureBits) != 0 && errno != EPERM) return Fail(Stage::kCapabilities, errno, "prctl PR_SET_SECUREBITS");
  for (int capability = 0; capability <= kMaxCapability; capability++) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
      if (errno == EINVAL || errno == EPERM) break; // past the last one this kernel knows
      return Fail(Stage::kCapabilities, errno, "prctl PR_CAPBSET_DROP");
    }
  }
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return Fail(Stage::kCapabilities, errno, "prctl PR_CAP_AMBIENT");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  if (syscall(SYS_capset, &header, none) != 0) return Fail(Stage::kCapabilities, errno, "capset");
  return true;
}

bool SetNoNewPrivileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Fail(Stage::kNoNewPrivileges, errno, "prctl PR_SET_NO_NEW_PRIVS");
  return true;
}

bool HasNoPrivileges() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct have[2]{};
  if (syscall(SYS_capget, &header, have) != 0) return Fail(Stage::kVerify, errno, "capget");
  for (const __user_cap_data_struct& each : have) {
    if ((each.effective | each.permitted | each.inheritable) != 0) return Fail(Stage::kVerify, EPERM, "capget", "a capability is left");
  }
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return Fail(Stage::kVerify, EPERM, "prctl PR_GET_NO_NEW_PRIVS");
  return true;
}

} // namespace ringfence
