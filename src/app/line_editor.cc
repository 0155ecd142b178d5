#include "app/line_editor.h"

#include <histedit.h>
#include <langinfo.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

namespace holmes::app {
namespace {

constexpr int kHistoryLines = 1000;

/// libedit reads characters by the locale; a bare system has none set, but C.UTF-8 is part of the C
/// library.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

struct LineEditor::Impl {
  std::string prompt;
  std::string history_path;
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  bool interrupted = false;

  static Impl* Of(EditLine* editor) {
    void* self = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &self);
    return static_cast<Impl*>(self);
  }
  static char* Prompt(EditLine* editor) { return Of(editor)->prompt.data(); }
  static unsigned char Interrupt(EditLine* editor, int) {
    Of(editor)->interrupted = true;
    return CC_NEWLINE;
  }
};

LineEditor::LineEditor(std::string prompt, std::string history_path)
    : impl_(std::make_unique<Impl>()) {
  UseUtf8();
  impl_->prompt = std::move(prompt);
  impl_->history_path = std::move(history_path);
  impl_->history = ::history_init();
  ::history(impl_->history, &impl_->event, H_SETSIZE, kHistoryLines);
  ::history(impl_->history, &impl_->event, H_SETUNIQUE, 1);
  if (!impl_->history_path.empty())
    ::history(impl_->history, &impl_->event, H_LOAD, impl_->history_path.c_str());
  impl_->editor = ::el_init("holmes", stdin, stdout, stderr);
  ::el_set(impl_->editor, EL_CLIENTDATA, impl_.get());
  ::el_set(impl_->editor, EL_PROMPT, &Impl::Prompt);
  ::el_set(impl_->editor, EL_EDITOR, "emacs");
  ::el_set(impl_->editor, EL_HIST, &::history, impl_->history);
  ::el_set(impl_->editor, EL_SETTY, "-d", "-isig", nullptr);
  ::el_set(impl_->editor, EL_ADDFN, "holmes-interrupt", "Forget this line", &Impl::Interrupt);
  ::el_set(impl_->editor, EL_BIND, "^C", "holmes-interrupt", nullptr);
  ::el_set(impl_->editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::~LineEditor() {
  if (!impl_->history_path.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(impl_->history_path).parent_path(),
                                        ignored);
    ::history(impl_->history, &impl_->event, H_SAVE, impl_->history_path.c_str());
  }
  ::el_end(impl_->editor);
  ::history_end(impl_->history);
}

std::optional<LineEditor::Line> LineEditor::Read() {
  impl_->interrupted = false;
  int count = 0;
  const char* text = ::el_gets(impl_->editor, &count);
  if (impl_->interrupted) {
    std::fputs("\n", stdout);
    return Line{.text = "", .interrupted = true};
  }
  if (text == nullptr || count <= 0) return std::nullopt;
  Line line{.text = std::string(text), .interrupted = false};
  while (!line.text.empty() && (line.text.back() == '\n' || line.text.back() == '\r'))
    line.text.pop_back();
  if (!line.text.empty()) ::history(impl_->history, &impl_->event, H_ENTER, line.text.c_str());
  return line;
}

std::string DefaultHistoryPath() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != 0)
    return std::string(state) + "/holmes/history";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0)
    return std::string(home) + "/.local/state/holmes/history";
  return "";
}

}  // namespace holmes::app
