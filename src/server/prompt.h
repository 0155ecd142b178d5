/// Messages or text to a prompt's token ids.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/engine.h"
#include "text/value.h"

namespace holmes::server {

/// Renders a chat template with these variables (a dict). Thread-safe.
using ChatRenderer = std::function<StatusOr<std::string>(const text::Value& variables)>;

/// The renderer of a model's own template; empty when it has none. A template that does not parse
/// gives a renderer that says so to every request, so that completions of raw prompts still work.
ChatRenderer MakeChatRenderer(std::string_view chat_template);

/// Thread-safe. Borrows the tokenizer.
class PromptBuilder {
 public:
  /// `render` may be empty: the model has no chat template then.
  PromptBuilder(const engine::ModelInfo& model,
                const text::Tokenizer& tokenizer,
                ChatRenderer render);

  /// Special tokens of the template become tokens; the same characters inside a message stay text,
  /// so that no user can forge a turn. Errors: kInvalidArgument with the template's own message and
  /// param "messages".
  StatusOr<std::vector<TokenId>> Chat(const text::Value& messages,
                                      bool add_generation_prompt,
                                      const text::Value& extra_variables) const;
  /// A raw prompt: special tokens in it are tokens, BOS is added where the model wants one.
  std::vector<TokenId> Raw(std::string_view text, bool add_special = true) const;

 private:
  std::string Guard(std::string_view text, const std::string& mark) const;
  text::Value GuardAll(const text::Value& value, const std::string& mark) const;
  std::vector<TokenId> EncodeGuarded(std::string_view text, const std::string& mark) const;

  std::string bos_text_;
  std::string eos_text_;
  const text::Tokenizer& tokenizer_;
  ChatRenderer render_;
  std::vector<std::string> special_texts_;  // longest first
  bool add_bos_ = false;
};

}  // namespace holmes::server
