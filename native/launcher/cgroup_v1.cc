// cgroup v1: one hierarchy per controller, no group kill, an eventfd instead of memory.oom.group.
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "cgroup.h"
#include "control_file.h"
#include "report.h"

namespace ringfence {

int ListLimitsV1(const Plan& plan, Limit* limits) {
  int count = 0;
  if (plan.memoryBytes != kUnlimited) {
    limits[count++] = {kMemoryController, "memory.limit_in_bytes", plan.memoryBytes, nullptr, false};
    // Memory and swap together at the same figure leaves no swap; the file is there only with swap accounting.
    limits[count++] = {kMemoryController, "memory.memsw.limit_in_bytes", plan.memoryBytes, nullptr, true};
    // What waits in TCP and UDP sockets has a counter of its own, which counts only once it has a limit.
    limits[count++] = {kMemoryController, "memory.kmem.tcp.limit_in_bytes", plan.memoryBytes / 4, nullptr, true};
    limits[count++] = {kMemoryController, "memory.swappiness", 0, "0", true};
  }
  if (plan.pids != kUnlimited) limits[count++] = {kPidsController, "pids.max", plan.pids, nullptr, false};
  if (plan.cpuQuotaUs != kUnlimited) {
    limits[count++] = {kCpuController, "cpu.cfs_period_us", 100000, nullptr, false};
    limits[count++] = {kCpuController, "cpu.cfs_quota_us", plan.cpuQuotaUs, nullptr, false};
  }
  return count;
}

bool WatchOomV1(RunCgroup* cgroup) {
  const int memory = DirectoryOf(*cgroup, kMemoryController);
  if (memory < 0) return true;
  Fd control(openat(memory, "memory.oom_control", O_RDONLY | O_CLOEXEC));
  if (!control.valid()) return Fail(Stage::kCgroup, errno, "open", "memory.oom_control");
  cgroup->oomEvent.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!cgroup->oomEvent.valid()) return Fail(Stage::kCgroup, errno, "eventfd");
  char registration[32];
  snprintf(registration, sizeof registration, "%d %d", cgroup->oomEvent.get(), control.get());
  const int error = WriteControl(memory, "cgroup.event_control", registration);
  if (error != 0) return Fail(Stage::kCgroup, error, "write", "cgroup.event_control");
  return true;
}

void ReadV1(const RunCgroup& cgroup, Record* record) {
  record->peakMemoryBytes = ReadNumber(DirectoryOf(cgroup, kMemoryController), "memory.max_usage_in_bytes");
  record->oomKills = ReadOomKills(cgroup);
  const int pids = DirectoryOf(cgroup, kPidsController);
  record->peakPids = ReadNumber(pids, "pids.peak");
  record->pidsRefused = ReadKeyedNumber(pids, "pids.events", "max");
  const int account = DirectoryOf(cgroup, kCpuAccountController);
  const uint64_t user = ReadNumber(account, "cpuacct.usage_user");
  const uint64_t system = ReadNumber(account, "cpuacct.usage_sys");
  if (user != kUnknown && system != kUnknown) {
    record->cpuUserUs = user / 1000;
    record->cpuSystemUs = system / 1000;
  }
}

} // namespace ringfence
