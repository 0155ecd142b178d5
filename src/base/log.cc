#include "base/log.h"

#include <atomic>
#include <cstdio>

namespace holmes::base {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};

LogSink& Sink() {
  static LogSink sink;
  return sink;
}

}  // namespace

void SetLogSink(LogSink sink) { Sink() = std::move(sink); }
void SetLogLevel(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }
bool LogEnabled(LogLevel level) { return level >= g_level.load(std::memory_order_relaxed); }

void LogLine(LogLevel level, std::string_view line) {
  if (Sink()) {
    Sink()(level, line);
    return;
  }
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  std::fprintf(stderr,
               "[%s] %.*s\n",
               kNames[static_cast<int>(level)],
               static_cast<int>(line.size()),
               line.data());
}

}  // namespace holmes::base
