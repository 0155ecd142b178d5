#include "server/prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>

#include "base/log.h"
#include "text/template.h"

namespace holmes::server {
namespace {

/// What no user can guess and no text contains: a noncharacter and 64 random bits.
std::string NewMark() {
  thread_local std::mt19937_64 random{std::random_device{}() * 0x9E3779B97F4A7C15ULL +
                                      std::random_device{}()};
  return fmt::format("\xEF\xB7\x90{:016x}\xEF\xB7\x91", random());
}

}  // namespace

ChatRenderer MakeChatRenderer(std::string_view chat_template) {
  if (chat_template.empty()) return {};
  auto parsed = text::Template::Parse(chat_template);
  if (!parsed.ok()) {
    base::LogWarning("the model's chat template cannot be used, chat requests will be refused: {}",
                     parsed.status().message());
    return [status = parsed.status()](const text::Value&) -> StatusOr<std::string> {
      return status.WithContext("the model's chat template cannot be used");
    };
  }
  return [shared = std::shared_ptr<const text::Template>(*std::move(parsed))](
             const text::Value& variables) {
    return shared->Render(variables, text::RenderOptions());
  };
}

PromptBuilder::PromptBuilder(const engine::ModelInfo& model,
                             const text::Tokenizer& tokenizer,
                             ChatRenderer render)
    : bos_text_(model.bos_text),
      eos_text_(model.eos_text),
      tokenizer_(tokenizer),
      render_(std::move(render)) {
  for (const text::AddedToken& token : tokenizer.spec().added) {
    if (token.special && !token.text.empty()) special_texts_.push_back(token.text);
  }
  std::sort(special_texts_.begin(),
            special_texts_.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  add_bos_ = tokenizer.spec().add_bos && !tokenizer.spec().add_eos;
}

std::string PromptBuilder::Guard(std::string_view text, const std::string& mark) const {
  std::string out;
  while (!text.empty()) {
    std::size_t first = std::string_view::npos;
    const std::string* found = nullptr;
    for (const std::string& special : special_texts_) {
      const std::size_t at = text.find(special);
      if (at >= first) continue;
      first = at;
      found = &special;
    }
    if (found == nullptr) break;
    out.append(text, 0, first);
    out += mark + *found + mark;
    text.remove_prefix(first + found->size());
  }
  out += text;
  return out;
}

text::Value PromptBuilder::GuardAll(const text::Value& value, const std::string& mark) const {
  if (value.is_string()) return Guard(value.as_string(), mark);
  if (value.is_list()) {
    text::List list;
    for (const text::Value& element : value.as_list()) list.push_back(GuardAll(element, mark));
    return list;
  }
  if (value.is_dict()) {
    text::Dict dict;
    for (const auto& [key, element] : value.as_dict())
      dict.emplace_back(key, GuardAll(element, mark));
    return dict;
  }
  return value;
}

std::vector<TokenId> PromptBuilder::EncodeGuarded(std::string_view text,
                                                  const std::string& mark) const {
  std::vector<TokenId> ids;
  bool inside = false;
  bool first = true;
  while (true) {
    const std::size_t at = text.find(mark);
    const text::EncodeOptions options{.parse_special = !inside, .add_special = first && add_bos_};
    const std::vector<TokenId> part = tokenizer_.Encode(text.substr(0, at), options);
    ids.insert(ids.end(), part.begin(), part.end());
    if (at == std::string_view::npos) return ids;
    text.remove_prefix(at + mark.size());
    inside = !inside;
    first = false;
  }
}

StatusOr<std::vector<TokenId>> PromptBuilder::Chat(const text::Value& messages,
                                                   bool add_generation_prompt,
                                                   const text::Value& extra_variables) const {
  if (!render_) {
    return base::InvalidArgumentError(
               "this model has no chat template; use /v1/completions with a prompt instead")
        .WithParam("messages");
  }
  const std::string mark = NewMark();
  text::Dict variables;
  if (extra_variables.is_dict()) {
    const text::Value guarded = GuardAll(extra_variables, mark);
    variables = guarded.as_dict();
  }
  variables.emplace_back("messages", GuardAll(messages, mark));
  variables.emplace_back("add_generation_prompt", add_generation_prompt);
  variables.emplace_back("bos_token", bos_text_);
  variables.emplace_back("eos_token", eos_text_);
  const StatusOr<std::string> rendered = render_(text::Value(std::move(variables)));
  if (!rendered.ok()) return rendered.status().WithParam("messages");
  return EncodeGuarded(*rendered, mark);
}

std::vector<TokenId> PromptBuilder::Raw(std::string_view text, bool add_special) const {
  return tokenizer_.Encode(text, {.parse_special = true, .add_special = add_special});
}

}  // namespace holmes::server
