// Small kernel files (cgroupfs, procfs): one open, one read or write, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringfence {

// 0 or an errno.
int WriteControl(int directory, const char* file, const char* text);
int ReadControl(int directory, const char* file, char* buffer, size_t size);

// The first number of the file, or kUnknown.
uint64_t ReadNumber(int directory, const char* file);

// The number after `key` at the start of a line ("oom_kill 3"), or kUnknown.
uint64_t ReadKeyedNumber(int directory, const char* file, const char* key);

} // namespace ringfence
