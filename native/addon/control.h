// The host's end of the control socket: records in, commands out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fd.h"

namespace ringfence {

struct Message {
  uint8_t bytes[4096];
  size_t size = 0;
  std::vector<Fd> descriptors;
};

enum class Received { kMessage, kNothingYet, kEnd };

Received Receive(const Fd& control, Message* message);
bool SendCommand(const Fd& control, const uint8_t* bytes, size_t size);

// The launcher reads an end of file; what it still has to say can be received.
void EndCommands(const Fd& control);

} // namespace ringfence
