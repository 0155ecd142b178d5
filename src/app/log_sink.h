/// The process's log: base/log.h's lines through spdlog to standard error, with time and level.
#pragma once

#include <string_view>

namespace holmes::app {

/// `level` is debug, info, warning or error. Call once, before other threads log.
void StartLog(std::string_view level);

}  // namespace holmes::app
