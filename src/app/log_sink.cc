#include "app/log_sink.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "base/log.h"

namespace holmes::app {
namespace {

spdlog::level::level_enum ToSpdlog(base::LogLevel level) {
  switch (level) {
    case base::LogLevel::kDebug:
      return spdlog::level::debug;
    case base::LogLevel::kInfo:
      return spdlog::level::info;
    case base::LogLevel::kWarning:
      return spdlog::level::warn;
    case base::LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

base::LogLevel LevelOf(std::string_view name) {
  if (name == "debug") return base::LogLevel::kDebug;
  if (name == "warning") return base::LogLevel::kWarning;
  if (name == "error") return base::LogLevel::kError;
  return base::LogLevel::kInfo;
}

}  // namespace

void StartLog(std::string_view level) {
  auto logger = std::make_shared<spdlog::logger>(
      "holmes", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  logger->set_level(spdlog::level::trace);  // base/log.h has filtered already
  base::SetLogSink([logger](base::LogLevel line_level, std::string_view line) {
    logger->log(ToSpdlog(line_level), spdlog::string_view_t(line.data(), line.size()));
  });
  base::SetLogLevel(LevelOf(level));
}

}  // namespace holmes::app
