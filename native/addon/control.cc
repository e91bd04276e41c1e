#include "control.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace ringfence {
namespace {

constexpr size_t kMostDescriptors = 253; // SCM_MAX_FD of the kernel

void TakeDescriptors(msghdr* header, std::vector<Fd>* descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t index = 0; index < count; index++) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + index * sizeof(int), sizeof(int));
      descriptors->emplace_back(fd);
    }
  }
}

} // namespace

Received Receive(const Fd& control, Message* message) {
  alignas(cmsghdr) char ancillary[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  for (;;) {
    iovec buffer{message->bytes, sizeof(message->bytes)};
    msghdr header{};
    header.msg_iov = &buffer;
    header.msg_iovlen = 1;
    header.msg_control = ancillary;
    header.msg_controllen = sizeof(ancillary);
    const ssize_t size = recvmsg(control.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::kNothingYet;
    // ECONNRESET: the launcher ended without having read all commands. The kernel reports that once, ahead of records
    // that are still queued.
    if (size < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (size < 0) return Received::kEnd;
    message->size = static_cast<size_t>(size);
    message->descriptors.clear();
    TakeDescriptors(&header, &message->descriptors);
    if (size > 0) return Received::kMessage;
    if (message->descriptors.empty()) return Received::kEnd;
  }
}

bool SendCommand(const Fd& control, const uint8_t* bytes, size_t size) {
  if (!control.valid() || size == 0) return false;
  ssize_t sent;
  do {
    sent = send(control.get(), bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

// shutdown(2) and not close(2): a process that another thread of the host is just forking holds a copy of the
// descriptor until its exec, and would keep the launcher from reading the end.
void EndCommands(const Fd& control) {
  if (control.valid()) shutdown(control.get(), SHUT_WR);
}

} // namespace ringfence
