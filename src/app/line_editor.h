/// Lines from a terminal, with editing and a history that outlives the process (libedit).
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace holmes::app {

/// One thread. While a line is edited, Ctrl-C is a key and no signal.
class LineEditor {
 public:
  /// `history_path` may be empty; a file that cannot be read or written is no error.
  LineEditor(std::string prompt, std::string history_path);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  struct Line {
    std::string text;
    bool interrupted = false;  // Ctrl-C: the line is to be forgotten
  };
  /// Nothing at the end of the input (Ctrl-D).
  std::optional<Line> Read();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// $XDG_STATE_HOME or ~/.local/state, then holmes/history; empty when neither is known.
std::string DefaultHistoryPath();

}  // namespace holmes::app
