#include "report.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/socket.h>

namespace ringfence {
namespace {

constexpr size_t kMaxDescriptors = 253; // SCM_MAX_FD

void Send(const Record& record) {
  // The host may be gone; the record is then of no use to anybody.
  while (send(kControlFd, &record, sizeof record, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

} // namespace

bool Fail(Stage stage, int error, const char* syscall, const char* subject) {
  Record record{};
  record.kind = static_cast<uint32_t>(RecordKind::kFailure);
  record.stage = static_cast<uint32_t>(stage);
  record.error = error;
  record.waitStatus = -1;
  snprintf(record.detail, sizeof record.detail, "%s %s", syscall, subject);
  Send(record);
  return false;
}

bool SendDescriptors(const Record& record, const int* descriptors, int count) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)]{};
  const size_t size = sizeof(int) * static_cast<size_t>(count);
  iovec data{const_cast<Record*>(&record), sizeof record};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(size);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(size);
  memcpy(CMSG_DATA(header), descriptors, size);
  ssize_t sent;
  while ((sent = sendmsg(kControlFd, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent == sizeof record;
}

void SendReady(uint32_t fences, int landlockAbi) {
  Record record{};
  record.kind = static_cast<uint32_t>(RecordKind::kReady);
  record.stage = static_cast<uint32_t>(Stage::kExec);
  record.fences = fences;
  record.waitStatus = landlockAbi;
  Send(record);
}

void SendEnded(const Record& record) { Send(record); }

} // namespace ringfence
