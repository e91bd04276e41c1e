#pragma once
namespace ringfence {
bool BringLoopbackUp();
} // namespace ringfence
