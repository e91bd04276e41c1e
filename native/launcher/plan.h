// The plan as the launcher uses it: strings point into the plan's bytes, which stay mapped.
#pragma once

#include "protocol.h"

namespace ringfence {

constexpr uint32_t kMaxMounts = 256;
constexpr uint32_t kMaxPorts = 100; // two descriptors each in one SCM_RIGHTS message
constexpr uint32_t kMaxProgram = 4096; // BPF_MAXINSNS
constexpr uint32_t kMaxCgroupParents = 8;
constexpr uint32_t kMaxStrings = 1u << 18; // argv and env, each

struct CgroupParent {
  uint32_t controllers;
  const char* directory;
};

struct Mount {
  MountKind kind;
  uint32_t flags;
  uint32_t mode;
  const char* path;
  const char* source;
  uint32_t sourceLength;
};

struct ListenPort {
  uint16_t number;
  bool ipv4, ipv6;
};

struct Plan {
  uint32_t flags;
  uint32_t insideUid, insideGid, outsideUid, outsideGid;
  uint64_t memoryBytes, pids, cpuQuotaUs, cpuTimeMs, openFiles, fileSizeBytes, scratchBytes, scratchInodes, deadlineMs;
  uint32_t cgroupVersion;
  const char* cgroupName;
  uint32_t cgroupParentCount;
  CgroupParent cgroupParents[kMaxCgroupParents];
  const char* executable;
  const char* cwd;
  const char* hostname;
  char** argv;
  char** env;
  uint32_t portCount;
  ListenPort ports[kMaxPorts];
  Filter filter;
  const char* program;
  uint32_t programLength; // instructions
  uint32_t mountCount;
  Mount mounts[kMaxMounts];

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
};

// Reads a plan out of untrusted bytes. Returns null when it is well-formed, else what is wrong with it.
// argv and env are allocated and never freed: the launcher runs one plan.
const char* ParsePlan(const uint8_t* bytes, size_t size, Plan* plan);

// Maps the plan's descriptor, copies it and parses the copy, so that nobody can change it afterwards.
bool ReadPlan(Plan* plan);

} // namespace ringfence
