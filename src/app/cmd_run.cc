// holmes run: chat with a model in the terminal, or answer what comes through a pipe.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "app/chat_session.h"
#include "app/command.h"
#include "app/line_editor.h"
#include "app/load_engine.h"
#include "app/signal_watch.h"
#include "app/terminal.h"
#include "base/edit_distance.h"

namespace holmes::app {
namespace {

constexpr std::size_t kMaxPipedBytes = 8 << 20;
constexpr std::string_view kCommandNames[] = {"/clear", "/exit", "/help"};

void Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void PrintFigures(const ChatAnswer& answer) {
  const auto seconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  };
  const double decode = seconds(answer.timings.total - answer.timings.time_to_first);
  const int later = answer.usage.completion_tokens - 1;
  fmt::print(
      stderr,
      "[{} prompt tokens ({} known), first token after {:.0f} ms, {} tokens at {:.1f} tok/s]\n",
      answer.usage.prompt_tokens,
      answer.usage.cached_prompt_tokens,
      seconds(answer.timings.time_to_first) * 1e3,
      answer.usage.completion_tokens,
      decode > 0 && later > 0 ? later / decode : 0.0);
}

class RunCommand final : public Command {
 public:
  void AddOptions(OptionTable& table) override {
    AddLoadOptions(table, load_);
    table.Add({.name = "prompt",
               .positional = true,
               .value_name = "PROMPT",
               .help = "one message to answer; without it, lines from the terminal, or all that "
                       "comes through a pipe as one message",
               .target = &prompt_});
    table.Add({.name = "system", .help = "the system message", .target = &chat_.system});
    table.Add({.name = "temperature",
               .help = "of sampling; 0 always takes the likeliest token",
               .target = &chat_.temperature,
               .low = 0,
               .high = 2});
    table.Add({.name = "top-p",
               .help = "sample from the likeliest tokens that make up this share",
               .target = &chat_.top_p,
               .low = 0.000001,
               .high = 1});
    table.Add({.name = "max-tokens",
               .help = "longest answer; 0 is what the context holds",
               .target = &chat_.max_tokens,
               .low = 0,
               .high = 1 << 24});
    table.Add({.name = "seed",
               .help = "of sampling; a new one each time by default",
               .target = &chat_.seed});
    table.Add({.name = "stats", .help = "print speed after each answer", .target = &stats_});
  }

  Status Run() override {
    const bool interactive = prompt_.empty() && IsTerminal(STDIN_FILENO);
    if (prompt_.empty() && !interactive) HOLMES_RETURN_IF_ERROR(ReadPipe());
    load_.max_sequences = 1;
    SignalWatch signals({SIGINT});
    HOLMES_ASSIGN_OR_RETURN(const LoadedModel loaded, LoadEngine(load_));
    ChatSession session(*loaded.engine, chat_);
    return interactive ? Converse(session, signals, loaded) : AnswerOnce(session, signals);
  }

 private:
  Status ReadPipe() {
    prompt_.assign(std::istreambuf_iterator<char>(std::cin), {});
    if (prompt_.size() > kMaxPipedBytes)
      return base::InvalidArgumentError(
          fmt::format("the prompt is longer than {} bytes", kMaxPipedBytes));
    while (prompt_.ends_with('\n')) prompt_.pop_back();
    if (prompt_.empty()) return base::InvalidArgumentError("the prompt is empty");
    return OkStatus();
  }

  /// Ctrl-C ends the answer and nothing else.
  StatusOr<ChatAnswer> Ask(ChatSession& session, SignalWatch& signals, std::string_view message) {
    signals.OnSignal([&session](int) { session.Stop(); });
    StatusOr<ChatAnswer> answer = session.Ask(message, &Print);
    signals.OnSignal(nullptr);
    if (!answer.ok()) return answer;
    Print("\n");
    if (stats_) PrintFigures(*answer);
    return answer;
  }

  Status AnswerOnce(ChatSession& session, SignalWatch& signals) {
    HOLMES_ASSIGN_OR_RETURN(const ChatAnswer answer, Ask(session, signals, prompt_));
    return answer.stopped ? base::CancelledError("") : OkStatus();
  }

  Status Converse(ChatSession& session, SignalWatch& signals, const LoadedModel& loaded) {
    fmt::print(
        "{} on {}. /clear forgets the conversation, /exit or Ctrl-D leaves, Ctrl-C stops an "
        "answer.\n",
        loaded.engine->model().name,
        loaded.device);
    LineEditor editor("> ", DefaultHistoryPath());
    while (const std::optional<LineEditor::Line> line = editor.Read()) {
      if (line->interrupted) continue;
      if (line->text.find_first_not_of(" \t") == std::string::npos) continue;
      if (line->text.starts_with('/') && line->text.find_first_of(" /", 1) == std::string::npos) {
        if (!DoCommand(line->text, session)) break;
        continue;
      }
      const StatusOr<ChatAnswer> answer = Ask(session, signals, line->text);
      if (!answer.ok()) fmt::print(stderr, "{}\n", answer.status().message());
    }
    return OkStatus();
  }

  /// False to leave.
  static bool DoCommand(const std::string& line, ChatSession& session) {
    if (line == "/exit" || line == "/quit" || line == "/bye") return false;
    if (line == "/clear") {
      session.Clear();
      fmt::print("The conversation is forgotten.\n");
    } else if (line == "/help") {
      fmt::print(
          "/clear  forget the conversation\n/exit   leave (also Ctrl-D)\nCtrl-C  stop an answer, "
          "or forget the line\n");
    } else {
      fmt::print("There is no {}; did you mean {}?\n", line, base::Nearest(line, kCommandNames));
    }
    std::fflush(stdout);
    return true;
  }

  LoadOptions load_;
  ChatOptions chat_;
  std::string prompt_;
  bool stats_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeRunCommand() { return std::make_unique<RunCommand>(); }

}  // namespace holmes::app
