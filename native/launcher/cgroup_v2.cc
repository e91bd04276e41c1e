// cgroup v2: one directory for every controller, born inside it with CLONE_INTO_CGROUP, ended as a group.
#include <cstdio>

#include "cgroup.h"
#include "control_file.h"

namespace ringfence {

int ListLimitsV2(const Plan& plan, char* cpuMax, size_t cpuMaxSize, Limit* limits) {
  int count = 0;
  if (plan.memoryBytes != kUnlimited) {
    limits[count++] = {kMemoryController, "memory.max", plan.memoryBytes, nullptr, false};
    limits[count++] = {kMemoryController, "memory.swap.max", 0, "0", true}; // missing: no swap accounting
    limits[count++] = {kMemoryController, "memory.oom.group", 0, "1", false};
  }
  if (plan.pids != kUnlimited) limits[count++] = {kPidsController, "pids.max", plan.pids, nullptr, false};
  if (plan.cpuQuotaUs != kUnlimited) {
    snprintf(cpuMax, cpuMaxSize, "%llu 100000", static_cast<unsigned long long>(plan.cpuQuotaUs));
    limits[count++] = {kCpuController, "cpu.max", 0, cpuMax, false};
  }
  return count;
}

void ReadV2(const RunCgroup& cgroup, Record* record) {
  const int directory = cgroup.count > 0 ? cgroup.directories[0].get() : -1;
  record->peakMemoryBytes = ReadNumber(directory, "memory.peak");
  record->oomKills = ReadOomKills(cgroup);
  record->peakPids = ReadNumber(directory, "pids.peak");
  record->pidsRefused = ReadKeyedNumber(directory, "pids.events", "max");
  const uint64_t user = ReadKeyedNumber(directory, "cpu.stat", "user_usec");
  const uint64_t system = ReadKeyedNumber(directory, "cpu.stat", "system_usec");
  if (user != kUnknown && system != kUnknown) {
    record->cpuUserUs = user;
    record->cpuSystemUs = system;
  }
}

} // namespace ringfence
