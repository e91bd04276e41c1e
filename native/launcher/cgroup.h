// The run's own cgroup, v1 or v2, in the order of its life: create, attach, read, kill, remove.
#pragma once

#include <sys/types.h>

#include "fd.h"
#include "plan.h"

namespace ringfence {

struct RunCgroup {
  uint32_t version = 0;
  uint32_t count = 0;                    // directories made so far: what RemoveCgroup has to undo
  uint32_t controllers[kMaxCgroupParents] = {};
  Fd parents[kMaxCgroupParents];
  Fd directories[kMaxCgroupParents];     // v2: one for all controllers; v1: one per hierarchy
  const char* name = "";
  Fd oomEvent;                           // v1: readable when the kernel ran out of the run's memory
};

// Makes the directories, writes every limit and reads it back: a limit that was written is not yet a limit that holds.
bool CreateCgroup(const Plan& plan, RunCgroup* cgroup);

// The descriptor for CLONE_INTO_CGROUP, or -1 where only AttachInit can do it.
int CloneIntoFd(const RunCgroup& cgroup);

// Moves init in where it was not born there (v1; no clone3). Reads back where init is and adds the fences that hold to *fences.
bool AttachInit(const Plan& plan, const RunCgroup& cgroup, pid_t init, uint32_t* fences);

// Fills memory, pids and cpu figures of a record; what this kernel does not tell stays kUnknown.
void ReadCgroup(const RunCgroup& cgroup, Record* record);

// Total cpu time so far in microseconds, kUnknown where there is no such counter.
uint64_t ReadCpuTimeUs(const RunCgroup& cgroup);
uint64_t ReadOomKills(const RunCgroup& cgroup);

void KillCgroup(const RunCgroup& cgroup);

// Removes the directories; waits for the last process to leave, bounded. False with errno set when one stays.
bool RemoveCgroup(RunCgroup* cgroup);

// ---- One driver per version; cgroup.cc chooses. ----
struct Limit {
  uint32_t controller;
  const char* file;
  uint64_t value;   // written in decimal; with `text`, the text counts
  const char* text;
  bool mayBeMissing;
};
constexpr int kMaxLimits = 8;
int ListLimitsV1(const Plan& plan, Limit* limits);
int ListLimitsV2(const Plan& plan, char* cpuMax, size_t cpuMaxSize, Limit* limits);
void ReadV1(const RunCgroup& cgroup, Record* record);
void ReadV2(const RunCgroup& cgroup, Record* record);
bool WatchOomV1(RunCgroup* cgroup);

// The directory of the hierarchy with this controller, or -1.
int DirectoryOf(const RunCgroup& cgroup, uint32_t controller);

} // namespace ringfence
