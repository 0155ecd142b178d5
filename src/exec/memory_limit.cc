#include "exec/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace holmes::exec {
namespace {

/// The number in a one-line file; -1 when absent or "max".
std::int64_t ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = -1;
  if (!(file >> value)) return -1;
  return value;
}

std::int64_t MachineAvailable() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::int64_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return -1;
}

/// Limit minus use of the cgroup that is visible at the mount point.
std::int64_t CgroupAvailable() {
  std::int64_t limit = ReadNumber("/sys/fs/cgroup/memory.max");
  std::int64_t used = ReadNumber("/sys/fs/cgroup/memory.current");
  if (limit < 0) {
    limit = ReadNumber("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    used = ReadNumber("/sys/fs/cgroup/memory/memory.usage_in_bytes");
  }
  if (limit < 0 || used < 0) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(0, limit - used);
}

}  // namespace

std::int64_t AvailableMemoryBytes() {
  const std::int64_t machine = MachineAvailable();
  if (machine < 0) return -1;
  return std::min(machine, CgroupAvailable());
}

}  // namespace holmes::exec
