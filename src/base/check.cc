#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace holmes::base {

void CheckFailed(std::string_view condition, std::string_view message, std::source_location where) {
  std::fprintf(stderr, "%s:%u: CHECK failed: %.*s%s%.*s\n", where.file_name(), static_cast<unsigned>(where.line()),
               static_cast<int>(condition.size()), condition.data(), message.empty() ? "" : ": ",
               static_cast<int>(message.size()), message.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace holmes::base
