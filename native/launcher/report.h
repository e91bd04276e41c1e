// Records to the host. Launcher, init and guest share the control socket until the guest's execve closes it there.
#pragma once

#include "protocol.h"

namespace ringfence {

// Tells the host which stage failed and why; returns false, so that a stage can end with it.
bool Fail(Stage stage, int error, const char* syscall, const char* subject = "");

// A record with descriptors; they stay open here. False with errno set.
bool SendDescriptors(const Record& record, const int* descriptors, int count);

void SendReady(uint32_t fences, int landlockAbi);
void SendEnded(const Record& record);

} // namespace ringfence
