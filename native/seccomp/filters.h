// The compiled-in filters of the architecture that is being built for.
#pragma once

#if defined(__x86_64__)
#include "generated/x64.h"
#elif defined(__aarch64__)
#include "generated/arm64.h"
#else
#error "no system-call filter for this architecture"
#endif
