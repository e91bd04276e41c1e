#include "report.h"

#include <cerrno>
#include <cstdio>
#include <sys/socket.h>

namespace ringfence {
namespace {

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

void SendReady(uint32_t fences) {
  Record record{};
  record.kind = static_cast<uint32_t>(RecordKind::kReady);
  record.stage = static_cast<uint32_t>(Stage::kExec);
  record.fences = fences;
  record.waitStatus = -1;
  Send(record);
}

void SendEnded(const Record& record) { Send(record); }

} // namespace ringfence
