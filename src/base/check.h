/// Assertions for our own bugs. Never on outside input: that gets a Status.
#pragma once

#include <cstdint>
#include <string_view>

namespace holmes::base {

/// Prints "file:line: CHECK failed: condition: message" to standard error and aborts.
/// The defaults name the caller; std::source_location would too, but clang 14 has none with
/// libstdc++.
[[noreturn]] void CheckFailed(std::string_view condition,
                              std::string_view message,
                              const char* file = __builtin_FILE(),
                              std::uint32_t line = __builtin_LINE());

}  // namespace holmes::base

/// Aborts in every build type when `condition` is false. The message is evaluated only then.
#define HOLMES_CHECK(condition, ...)                                            \
  do {                                                                          \
    if (!(condition)) [[unlikely]]                                              \
      ::holmes::base::CheckFailed(#condition, ::std::string_view{__VA_ARGS__}); \
  } while (false)

/// As HOLMES_CHECK in debug and sanitizer builds (HOLMES_DEBUG_CHECKS), not evaluated otherwise.
#ifdef HOLMES_DEBUG_CHECKS
#define HOLMES_DCHECK(condition, ...) HOLMES_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#else
#define HOLMES_DCHECK(condition, ...)        \
  do {                                       \
    if (false) static_cast<void>(condition); \
  } while (false)
#endif
