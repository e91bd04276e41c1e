#include "loopback.h"

#include <cerrno>
#include <cstring>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "fd.h"
#include "report.h"

namespace ringfence {

bool BringLoopbackUp() {
  Fd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_fd.valid()) return Fail(Stage::kLoopback, errno, "socket");
  ifreq request{};
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(socket_fd.get(), SIOCSIFFLAGS, &request) != 0) return Fail(Stage::kLoopback, errno, "ioctl SIOCSIFFLAGS", "lo");
  return true;
}

} // namespace ringfence
