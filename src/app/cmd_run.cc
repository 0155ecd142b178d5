// holmes run: chat with a model in the terminal, or answer what comes through a pipe.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "app/chat.h"
#include "app/command.h"
#include "app/generation_defaults.h"
#include "app/line_editor.h"
#include "app/load_engine.h"
#include "app/signal_watch.h"
#include "app/terminal.h"
#include "base/edit_distance.h"

namespace holmes::app {
namespace {

constexpr std::size_t kMaxPipedBytes = 8 << 20;
/// Where neither the user nor the model says anything.
const server::GenerationDefaults kChatDefaults = {.temperature = 0.7, .top_p = 0.95};
constexpr std::string_view kCommandNames[] = {"/clear", "/exit", "/help"};

void Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void PrintFigures(const ChatAnswer& answer) {
  const auto seconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  };
  const double decode = seconds(answer.total - answer.time_to_first);
  const int later = answer.completion_tokens - 1;
  fmt::print(
      stderr,
      "[{} prompt tokens ({} known), first token after {:.0f} ms, {} tokens at {:.1f} tok/s]\n",
      answer.prompt_tokens,
      answer.cached_prompt_tokens,
      seconds(answer.time_to_first) * 1e3,
      answer.completion_tokens,
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
    table.Add({.name = "url",
               .help = "talk to a running server instead of loading a model: holmes run --url "
                       "http://127.0.0.1:8000 [PROMPT]",
               .target = &url_});
    table.Add({.name = "api-key",
               .value_name = "KEY",
               .help = "of the server at --url",
               .target = &api_key_});
    table.Add({.name = "system", .help = "the system message", .target = &chat_.system});
    AddGenerationOptions(table, chat_.sampling);
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
    if (!url_.empty()) {
      if (!prompt_.empty())
        return base::InvalidArgumentError("with --url, give one argument: the prompt");
      prompt_ = std::exchange(load_.model, "");  // no model is loaded here
    }
    if (prompt_.empty() && !IsTerminal(STDIN_FILENO)) HOLMES_RETURN_IF_ERROR(ReadPipe());
    SignalWatch signals({SIGINT});
    if (!url_.empty()) {
      HOLMES_ASSIGN_OR_RETURN(
          const std::unique_ptr<AnswerSource> source,
          MakeUrlSource({.url = url_, .api_key = api_key_, .model = load_.model_name}, chat_));
      return Talk(*source, signals, url_);
    }
    load_.max_sequences = 1;
    HOLMES_ASSIGN_OR_RETURN(const LoadedModel loaded, LoadEngine(load_));
    chat_.sampling = Over(Over(chat_.sampling, loaded.defaults), kChatDefaults);
    const std::unique_ptr<AnswerSource> source = MakeEngineSource(*loaded.engine, chat_);
    return Talk(
        *source, signals, fmt::format("{} on {}", loaded.engine->model().name, loaded.device));
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

  Status Talk(AnswerSource& source, SignalWatch& signals, const std::string& partner) {
    ChatSession session(source, chat_.system);
    // Ctrl-C ends the answer and nothing else.
    const auto ask = [&](std::string_view message) -> StatusOr<ChatAnswer> {
      signals.OnSignal([&source](int) { source.Stop(); });
      StatusOr<ChatAnswer> answer = session.Ask(message, &Print);
      signals.OnSignal(nullptr);
      if (!answer.ok()) return answer;
      Print("\n");
      if (stats_) PrintFigures(*answer);
      return answer;
    };
    if (prompt_.empty()) return Converse(session, ask, partner);
    HOLMES_ASSIGN_OR_RETURN(const ChatAnswer answer, ask(prompt_));
    return answer.stopped ? base::CancelledError("") : OkStatus();
  }

  static Status Converse(ChatSession& session,
                         const std::function<StatusOr<ChatAnswer>(std::string_view)>& ask,
                         const std::string& partner) {
    fmt::print(
        "{}. /clear forgets the conversation, /exit or Ctrl-D leaves, Ctrl-C stops an answer.\n",
        partner);
    LineEditor editor("> ", DefaultHistoryPath());
    while (const std::optional<LineEditor::Line> line = editor.Read()) {
      if (line->interrupted) continue;
      if (line->text.find_first_not_of(" \t") == std::string::npos) continue;
      if (line->text.starts_with('/') && line->text.find_first_of(" /", 1) == std::string::npos) {
        if (!DoCommand(line->text, session)) break;
        continue;
      }
      const StatusOr<ChatAnswer> answer = ask(line->text);
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
  std::string url_;
  std::string api_key_;
  bool stats_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeRunCommand() { return std::make_unique<RunCommand>(); }

}  // namespace holmes::app
