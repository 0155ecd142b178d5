#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "app/command_line.h"

namespace {

holmes::app::Environment ReadEnvironment() {
  holmes::app::Environment out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that goes away is an error of that one write, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
    return holmes::app::RunCommandLine(args, ReadEnvironment());
  } catch (const std::bad_alloc&) {
    std::fputs("holmes: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "holmes: %s\n", error.what());
  }
  return 1;
}
