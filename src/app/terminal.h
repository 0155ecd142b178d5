/// What people see while they wait.
#pragma once

#include <string>
#include <string_view>

namespace holmes::app {

bool IsTerminal(int fd);

/// A bar on standard error, redrawn in place; where that is no terminal, one line when it begins.
/// One thread at a time.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  /// Ends the bar as it stands.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `fraction` in [0, 1]; `stage` is shown behind the bar.
  void Show(double fraction, std::string_view stage);

 private:
  const std::string title_;
  const bool terminal_;
  int shown_percent_ = -1;
  std::string shown_stage_;
};

}  // namespace holmes::app
