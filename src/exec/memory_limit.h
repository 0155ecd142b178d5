/// How much memory this process may still take.
#pragma once

#include <cstdint>

namespace holmes::exec {

/// The smaller of what the machine has available and what the cgroup (v2, then v1) leaves. Bytes;
/// -1 when neither can be read.
std::int64_t AvailableMemoryBytes();

}  // namespace holmes::exec
