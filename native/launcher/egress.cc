#include "egress.h"

#include <cerrno>
#include <cstring>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd.h"
#include "report.h"
#include "watch.h"

namespace ringfence {
namespace {

constexpr uint16_t kDnsPort = 53;
constexpr int kBacklog = 1024;

// 198.18.0.1/15, of the range whose addresses stand for the allowed names (src/egress/name-table.ts).
constexpr uint32_t kOwnAddress = 0xc6120001;
constexpr uint8_t kOwnPrefix = 15;

struct RouteRequest {
  nlmsghdr header;
  rtmsg route;
  rtattr attribute;
  uint32_t device;
};

struct AddressRequest {
  nlmsghdr header;
  ifaddrmsg address;
  rtattr attribute;
  uint32_t local;
};

// Sends one request and reads the kernel's answer to it: 0, or an errno.
int Ask(int netlink, const void* request, size_t size) {
  if (send(netlink, request, size, 0) != static_cast<ssize_t>(size)) return errno;
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char rest[256];
  } answer{};
  if (recv(netlink, &answer, sizeof answer, 0) < static_cast<ssize_t>(sizeof answer.header + sizeof(int))) return EIO;
  return answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EPROTO;
}

// getaddrinfo with AI_ADDRCONFIG asks for no A record where the only address is 127.0.0.1.
int AddOwnAddress(int netlink, uint32_t loopback) {
  AddressRequest request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_NEWADDR;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
  request.address.ifa_family = AF_INET;
  request.address.ifa_prefixlen = kOwnPrefix;
  request.address.ifa_index = loopback;
  request.attribute.rta_type = IFA_LOCAL;
  request.attribute.rta_len = RTA_LENGTH(sizeof request.local);
  request.local = htonl(kOwnAddress);
  return Ask(netlink, &request, sizeof request);
}

// `ip route add local default dev lo`: a connect to any address comes to a listener of this namespace, or is refused at once.
int AddLocalDefaultRoute(int netlink, unsigned char family, uint32_t loopback) {
  RouteRequest request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_NEWROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
  request.route.rtm_family = family;
  request.route.rtm_table = RT_TABLE_LOCAL;
  request.route.rtm_protocol = RTPROT_BOOT;
  request.route.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  request.route.rtm_type = RTN_LOCAL;
  request.attribute.rta_type = RTA_OIF;
  request.attribute.rta_len = RTA_LENGTH(sizeof request.device);
  request.device = loopback;
  return Ask(netlink, &request, sizeof request);
}

bool AddRoutes(bool* hasIpv6) {
  Fd netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!netlink.valid()) return Fail(Stage::kEgress, errno, "socket", "AF_NETLINK");
  const uint32_t loopback = if_nametoindex("lo");
  if (loopback == 0) return Fail(Stage::kEgress, errno, "if_nametoindex", "lo");
  int error = AddOwnAddress(netlink.get(), loopback);
  if (error != 0) return Fail(Stage::kEgress, error, "RTM_NEWADDR", "198.18.0.1/15");
  error = AddLocalDefaultRoute(netlink.get(), AF_INET, loopback);
  if (error != 0) return Fail(Stage::kEgress, error, "RTM_NEWROUTE", "local 0.0.0.0/0");
  // A machine without IPv6 has no IPv6 address to reach either.
  error = AddLocalDefaultRoute(netlink.get(), AF_INET6, loopback);
  *hasIpv6 = error == 0;
  if (error != 0 && error != EAFNOSUPPORT && error != EOPNOTSUPP && error != EACCES) {
    return Fail(Stage::kEgress, error, "RTM_NEWROUTE", "local ::/0");
  }
  return true;
}

bool Bind(int fd, uint32_t address, uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(address);
  return bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
}

bool BindIpv6(int fd, uint16_t port) {
  const int only = 1;
  if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only) != 0) return false;
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  at.sin6_port = htons(port);
  return bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
}

Fd OpenListener(int family, uint32_t address, uint16_t port) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fd;
  // Port 53 may be allowed to a literal and is taken on 127.0.0.1: the more specific socket wins.
  const int share = 1;
  if (setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &share, sizeof share) != 0) return Fd();
  const bool bound = family == AF_INET ? Bind(fd.get(), address, port) : BindIpv6(fd.get(), port);
  if (!bound || listen(fd.get(), kBacklog) != 0) return Fd();
  return fd;
}

Fd OpenDnsUdp() {
  Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.valid() && !Bind(fd.get(), INADDR_LOOPBACK, kDnsPort)) return Fd();
  return fd;
}

// Sockets for the host. One that could not be opened leaves its errno.
class Sockets {
 public:
  bool Add(Fd fd, const char* what) {
    if (!fd.valid()) return Fail(Stage::kEgress, errno, "socket", what);
    numbers_[count_] = fd.get();
    owned_[count_++] = static_cast<Fd&&>(fd);
    return true;
  }

  bool Send(bool hasIpv6) {
    Record record{};
    record.kind = static_cast<uint32_t>(RecordKind::kSockets);
    record.stage = static_cast<uint32_t>(Stage::kEgress);
    record.waitStatus = hasIpv6 ? 1 : 0;
    if (!SendDescriptors(record, numbers_, count_)) return Fail(Stage::kEgress, errno, "sendmsg", "sockets");
    return true;
  }

 private:
  Fd owned_[4 + 2 * kMaxPorts];
  int numbers_[4 + 2 * kMaxPorts];
  int count_ = 0;
};

} // namespace

bool OpenEgress(const Plan& plan) {
  bool hasIpv6 = false;
  if (!AddRoutes(&hasIpv6)) return false;
  Sockets sockets;
  if (!sockets.Add(OpenDnsUdp(), "udp 127.0.0.1:53")) return false;
  if (!sockets.Add(OpenListener(AF_INET, INADDR_LOOPBACK, kDnsPort), "tcp 127.0.0.1:53")) return false;
  if (!sockets.Add(OpenWatch(plan), "packet")) return false;
  if (!sockets.Add(OpenCounter(plan), "packet")) return false;
  for (uint32_t i = 0; i < plan.portCount; i++) {
    const ListenPort& port = plan.ports[i];
    if (port.ipv4 && !sockets.Add(OpenListener(AF_INET, INADDR_ANY, port.number), "tcp 0.0.0.0")) return false;
  }
  for (uint32_t i = 0; hasIpv6 && i < plan.portCount; i++) {
    const ListenPort& port = plan.ports[i];
    if (port.ipv6 && !sockets.Add(OpenListener(AF_INET6, 0, port.number), "tcp [::]")) return false;
  }
  return sockets.Send(hasIpv6);
}

bool OpenListeners(const Plan& plan) {
  Sockets sockets;
  for (uint32_t i = 0; i < plan.portCount; i++) {
    if (!sockets.Add(OpenListener(AF_INET, INADDR_LOOPBACK, plan.ports[i].number), "tcp 127.0.0.1")) return false;
  }
  return sockets.Send(false);
}

} // namespace ringfence
