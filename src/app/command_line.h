/// From the process's arguments to an exit code.
#pragma once

#include <span>
#include <string>

#include "app/options.h"

namespace holmes::app {

/// `args` without the program's name. Errors go to standard error as one line "holmes: ...".
int RunCommandLine(std::span<const std::string> args, const Environment& environment);

}  // namespace holmes::app
