#include "place.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "fd.h"

namespace ringfence {
namespace {

constexpr size_t kLongestPlace = 16384; // a line for each v1 hierarchy

bool IsAt(const char* place) {
  const Fd file(open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC));
  char text[kLongestPlace];
  size_t size = 0;
  while (file.valid() && size < sizeof text) {
    const ssize_t got = read(file.get(), text + size, sizeof text - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return size == strlen(place) && size < sizeof text && memcmp(text, place, size) == 0;
}

} // namespace

bool MoveToOwnPlace(const char* procs, const char* place) {
  if (!IsAt(place)) return false;
  const Fd file(open(procs, O_WRONLY | O_CLOEXEC));
  return file.valid() && write(file.get(), "0", 1) == 1; // 0 is whoever writes
}

} // namespace ringfence
