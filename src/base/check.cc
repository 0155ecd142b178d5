#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace holmes::base {

void CheckFailed(std::string_view condition,
                 std::string_view message,
                 const char* file,
                 std::uint32_t line) {
  std::fprintf(stderr,
               "%s:%u: CHECK failed: %.*s%s%.*s\n",
               file,
               static_cast<unsigned>(line),
               static_cast<int>(condition.size()),
               condition.data(),
               message.empty() ? "" : ": ",
               static_cast<int>(message.size()),
               message.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace holmes::base
