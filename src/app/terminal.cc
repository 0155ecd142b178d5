#include "app/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace holmes::app {
namespace {

constexpr int kBarColumns = 30;

}  // namespace

bool IsTerminal(int fd) { return ::isatty(fd) == 1; }

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)), terminal_(IsTerminal(STDERR_FILENO)) {
  if (!terminal_) fmt::print(stderr, "holmes: {}\n", title_);
}

ProgressBar::~ProgressBar() {
  if (terminal_ && shown_percent_ >= 0) std::fputc('\n', stderr);
}

void ProgressBar::Show(double fraction, std::string_view stage) {
  const int percent = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * 100);
  if (!terminal_ || (percent == shown_percent_ && stage == shown_stage_)) return;
  shown_percent_ = percent;
  shown_stage_ = stage;
  const auto filled = static_cast<std::size_t>(kBarColumns * percent / 100);
  fmt::print(stderr,
             "\r{} [{}{}] {:>3} % {}\x1b[K",
             title_,
             std::string(filled, '#'),
             std::string(kBarColumns - filled, '.'),
             percent,
             stage);
  std::fflush(stderr);
}

}  // namespace holmes::app
