#include "cgroup.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control_file.h"
#include "report.h"

namespace ringfence {
namespace {

// The kernel rounds memory limits down to whole pages; the largest page size in use is 64 KiB.
constexpr uint64_t kRounding = 65536;

bool Holds(const Limit& limit, const char* readBack) {
  if (limit.text != nullptr) {
    const size_t length = strlen(limit.text);
    return strncmp(readBack, limit.text, length) == 0 && (readBack[length] == '\n' || readBack[length] == 0);
  }
  if (readBack[0] < '0' || readBack[0] > '9') return false; // "max"
  const uint64_t value = strtoull(readBack, nullptr, 10);
  if (limit.controller != kMemoryController) return value == limit.value;
  return value <= limit.value && limit.value - value < kRounding;
}

bool ApplyLimit(const RunCgroup& cgroup, const Limit& limit) {
  const int directory = DirectoryOf(cgroup, limit.controller);
  if (directory < 0) return Fail(Stage::kCgroup, ENODEV, "write", limit.file);
  char decimal[24];
  snprintf(decimal, sizeof decimal, "%llu", static_cast<unsigned long long>(limit.value));
  const int error = WriteControl(directory, limit.file, limit.text != nullptr ? limit.text : decimal);
  if (error == ENOENT && limit.mayBeMissing) return true;
  if (error != 0) return Fail(Stage::kCgroup, error, "write", limit.file);
  char readBack[64];
  const int readError = ReadControl(directory, limit.file, readBack, sizeof readBack);
  if (readError != 0) return Fail(Stage::kCgroup, readError, "read", limit.file);
  if (!Holds(limit, readBack)) return Fail(Stage::kCgroup, ERANGE, "read back", limit.file);
  return true;
}

// The line of /proc/<pid>/cgroup for a hierarchy ends with the run's own name once the process is inside.
uint32_t CountMemberships(const char* text, const char* name) {
  uint32_t count = 0;
  const size_t length = strlen(name);
  for (const char* line = text; *line != 0;) {
    const char* end = strchrnul(line, '\n');
    if (static_cast<size_t>(end - line) > length && end[-static_cast<ptrdiff_t>(length) - 1] == '/' &&
        strncmp(end - length, name, length) == 0) {
      count++;
    }
    line = *end == 0 ? end : end + 1;
  }
  return count;
}

} // namespace

int DirectoryOf(const RunCgroup& cgroup, uint32_t controller) {
  for (uint32_t i = 0; i < cgroup.count; i++) {
    if ((cgroup.controllers[i] & controller) != 0) return cgroup.directories[i].get();
  }
  return -1;
}

bool CreateCgroup(const Plan& plan, RunCgroup* cgroup) {
  cgroup->version = plan.cgroupVersion;
  cgroup->name = plan.cgroupName;
  if (plan.cgroupVersion == 0) return true;
  for (uint32_t i = 0; i < plan.cgroupParentCount; i++) {
    const CgroupParent& parent = plan.cgroupParents[i];
    cgroup->parents[i].reset(open(parent.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!cgroup->parents[i].valid()) return Fail(Stage::kCgroup, errno, "open", parent.directory);
    if (mkdirat(cgroup->parents[i].get(), cgroup->name, 0755) != 0) return Fail(Stage::kCgroup, errno, "mkdir", parent.directory);
    cgroup->count = i + 1;
    cgroup->controllers[i] = parent.controllers;
    cgroup->directories[i].reset(openat(cgroup->parents[i].get(), cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!cgroup->directories[i].valid()) return Fail(Stage::kCgroup, errno, "open", parent.directory);
  }
  char cpuMax[48];
  Limit limits[kMaxLimits];
  const int count =
      cgroup->version == 2 ? ListLimitsV2(plan, cpuMax, sizeof cpuMax, limits) : ListLimitsV1(plan, limits);
  for (int i = 0; i < count; i++) {
    if (!ApplyLimit(*cgroup, limits[i])) return false;
  }
  return cgroup->version == 2 || WatchOomV1(cgroup);
}

int CloneIntoFd(const RunCgroup& cgroup) {
  return cgroup.version == 2 && cgroup.count == 1 ? cgroup.directories[0].get() : -1;
}

bool AttachInit(const Plan& plan, const RunCgroup& cgroup, pid_t init, uint32_t* fences) {
  if (cgroup.version == 0) return true;
  char path[40];
  char text[8192];
  snprintf(path, sizeof path, "/proc/%d/cgroup", init);
  int error = ReadControl(AT_FDCWD, path, text, sizeof text);
  if (error != 0) return Fail(Stage::kAttach, error, "read", path);
  if (CountMemberships(text, cgroup.name) != cgroup.count) {
    char pid[16];
    snprintf(pid, sizeof pid, "%d", init);
    for (uint32_t i = 0; i < cgroup.count; i++) {
      error = WriteControl(cgroup.directories[i].get(), "cgroup.procs", pid);
      if (error != 0) return Fail(Stage::kAttach, error, "write cgroup.procs", plan.cgroupParents[i].directory);
    }
    error = ReadControl(AT_FDCWD, path, text, sizeof text);
    if (error != 0) return Fail(Stage::kAttach, error, "read", path);
  }
  if (CountMemberships(text, cgroup.name) != cgroup.count) return Fail(Stage::kAttach, ESRCH, "read back", path);
  if (plan.memoryBytes != kUnlimited && DirectoryOf(cgroup, kMemoryController) >= 0) *fences |= kFenceMemory;
  if (plan.pids != kUnlimited && DirectoryOf(cgroup, kPidsController) >= 0) *fences |= kFenceProcessLimit;
  if (plan.cpuQuotaUs != kUnlimited && DirectoryOf(cgroup, kCpuController) >= 0) *fences |= kFenceCpu;
  if (plan.cpuTimeMs != kUnlimited && ReadCpuTimeUs(cgroup) != kUnknown) *fences |= kFenceCpuTime;
  return true;
}

void ReadCgroup(const RunCgroup& cgroup, Record* record) {
  if (cgroup.version == 1) ReadV1(cgroup, record);
  if (cgroup.version == 2) ReadV2(cgroup, record);
}

uint64_t ReadCpuTimeUs(const RunCgroup& cgroup) {
  if (cgroup.version == 2 && cgroup.count > 0) return ReadKeyedNumber(cgroup.directories[0].get(), "cpu.stat", "usage_usec");
  const uint64_t ns = ReadNumber(DirectoryOf(cgroup, kCpuAccountController), "cpuacct.usage");
  return ns == kUnknown ? kUnknown : ns / 1000;
}

uint64_t ReadOomKills(const RunCgroup& cgroup) {
  const int directory = DirectoryOf(cgroup, kMemoryController);
  return ReadKeyedNumber(directory, cgroup.version == 2 ? "memory.events" : "memory.oom_control", "oom_kill");
}

void KillCgroup(const RunCgroup& cgroup) {
  for (uint32_t i = 0; i < cgroup.count; i++) {
    if (WriteControl(cgroup.directories[i].get(), "cgroup.kill", "1") == 0) continue;
    char text[65536];
    if (ReadControl(cgroup.directories[i].get(), "cgroup.procs", text, sizeof text) != 0) continue;
    for (char* at = text; *at != 0; at++) {
      const long pid = strtol(at, &at, 10);
      if (pid > 1) kill(static_cast<pid_t>(pid), SIGKILL);
      if (*at == 0) break;
    }
  }
}

bool RemoveCgroup(RunCgroup* cgroup) {
  bool removed = true;
  while (cgroup->count > 0) {
    const uint32_t i = cgroup->count - 1;
    // A process that was reaped may still be on its way out of its cgroup: EBUSY, for a moment.
    for (int attempt = 0; unlinkat(cgroup->parents[i].get(), cgroup->name, AT_REMOVEDIR) != 0; attempt++) {
      if (errno == ENOENT) break;
      if (errno != EBUSY || attempt == 2000) {
        removed = false;
        break;
      }
      if (attempt > 20) KillCgroup(*cgroup);
      const timespec pause{0, attempt < 20 ? 100000 : 1000000};
      nanosleep(&pause, nullptr);
    }
    cgroup->directories[i].reset();
    cgroup->count = i;
  }
  return removed;
}

} // namespace ringfence
