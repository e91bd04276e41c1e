#include "control_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "fd.h"
#include "protocol.h"

namespace ringfence {

int WriteControl(int directory, const char* file, const char* text) {
  Fd fd(openat(directory, file, O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  const size_t size = strlen(text);
  const ssize_t written = write(fd.get(), text, size);
  if (written < 0) return errno;
  return static_cast<size_t>(written) == size ? 0 : EIO;
}

int ReadControl(int directory, const char* file, char* buffer, size_t size) {
  Fd fd(openat(directory, file, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  size_t have = 0;
  while (have + 1 < size) {
    const ssize_t got = read(fd.get(), buffer + have, size - 1 - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  buffer[have] = 0;
  return 0;
}

namespace {

uint64_t ParseNumber(const char* text) {
  if (*text < '0' || *text > '9') return kUnknown;
  return strtoull(text, nullptr, 10);
}

} // namespace

uint64_t ReadNumber(int directory, const char* file) {
  char buffer[64];
  if (directory < 0 || ReadControl(directory, file, buffer, sizeof buffer) != 0) return kUnknown;
  return ParseNumber(buffer);
}

uint64_t ReadKeyedNumber(int directory, const char* file, const char* key) {
  char buffer[4096];
  if (directory < 0 || ReadControl(directory, file, buffer, sizeof buffer) != 0) return kUnknown;
  const size_t length = strlen(key);
  for (const char* line = buffer; line != nullptr && *line != 0;) {
    if (strncmp(line, key, length) == 0 && line[length] == ' ') return ParseNumber(line + length + 1);
    line = strchr(line, '\n');
    if (line != nullptr) line++;
  }
  return kUnknown;
}

} // namespace ringfence
