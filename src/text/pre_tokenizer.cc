#include "text/pre_tokenizer.h"

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <array>
#include <map>
#include <set>

#include "base/edit_distance.h"
#include "text/utf8.h"

namespace holmes::text {
namespace {

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kThreeDigits =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kOneDigit =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

PreTokenStep Isolated(const char* pattern) { return {PreTokenStep::Kind::kRegexIsolated, pattern}; }

const std::map<std::string, NamedPreTokenizer, std::less<>>& Named() {
  static const std::map<std::string, NamedPreTokenizer, std::less<>> named = [] {
    const NamedPreTokenizer gpt2{{Isolated(kGpt2)}, "", false};
    const NamedPreTokenizer digits_gpt2{
        {{PreTokenStep::Kind::kDigitsIndividual, ""}, Isolated(kGpt2)}, "", false};
    const NamedPreTokenizer three{{Isolated(kThreeDigits)}, "", true};
    const NamedPreTokenizer one{{Isolated(kOneDigit)}, "NFC", false};
    return std::map<std::string, NamedPreTokenizer, std::less<>>{{"default", gpt2},
                                                                 {"gpt-2", gpt2},
                                                                 {"smollm", digits_gpt2},
                                                                 {"llama-bpe", three},
                                                                 {"llama3", three},
                                                                 {"llama-v3", three},
                                                                 {"qwen2", one},
                                                                 {"deepseek-r1-qwen", one}};
  }();
  return named;
}

struct CodeFree {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct ContextFree {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

class Regex {
 public:
  static StatusOr<Regex> Compile(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    Regex out;
    out.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                                  pattern.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK,
                                  &error,
                                  &offset,
                                  nullptr));
    if (out.code_ == nullptr) {
      std::array<PCRE2_UCHAR, 256> text{};
      pcre2_get_error_message(error, text.data(), text.size());
      return base::InvalidArgumentError(
          fmt::format("pre-tokenizer pattern '{}' fails at offset {}: {}",
                      pattern,
                      offset,
                      reinterpret_cast<const char*>(text.data())));
    }
    // Without JIT the interpreter runs; only speed differs.
    pcre2_jit_compile(out.code_.get(), PCRE2_JIT_COMPLETE);
    return out;
  }

  /// Calls match(begin, end) for every match, left to right. A search that hits its limit ends
  /// there: the rest is one piece.
  template <typename Match>
  void ForEach(std::string_view text, Match&& match) const {
    const std::unique_ptr<pcre2_match_data, MatchFree> data(pcre2_match_data_create(1, nullptr));
    const std::unique_ptr<pcre2_match_context, ContextFree> context(
        pcre2_match_context_create(nullptr));
    pcre2_set_match_limit(context.get(), 10'000'000);
    std::size_t at = 0;
    while (at < text.size()) {
      const int found = pcre2_match(code_.get(),
                                    reinterpret_cast<PCRE2_SPTR>(text.data()),
                                    text.size(),
                                    at,
                                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                                    data.get(),
                                    context.get());
      if (found < 0) return;
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
      match(range[0], range[1]);
      at = range[1];
    }
  }

 private:
  std::unique_ptr<pcre2_code, CodeFree> code_;
};

/// Calls digit(begin, end) for every character of category N.
template <typename Match>
void ForEachDigit(std::string_view text, Match&& match) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(at));
    const auto end = at + static_cast<std::size_t>(step.length);
    if (step.kind == Utf8Step::Kind::kCharacter) {
      const utf8proc_category_t category =
          utf8proc_category(static_cast<utf8proc_int32_t>(step.code_point));
      if (category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
          category == UTF8PROC_CATEGORY_NO)
        match(at, end);
    }
    at = end;
  }
}

struct CompiledStep {
  PreTokenStep::Kind kind;
  std::optional<Regex> regex;
};

class StepsPreTokenizer final : public PreTokenizer {
 public:
  explicit StepsPreTokenizer(std::vector<CompiledStep> steps) : steps_(std::move(steps)) {}

  void Split(std::string_view text, std::vector<std::string_view>& pieces) const override {
    pieces.assign(text.empty() ? 0 : 1, text);
    std::vector<std::string_view> next;
    for (const CompiledStep& step : steps_) {
      next.clear();
      for (const std::string_view piece : pieces) SplitOnce(step, piece, next);
      pieces.swap(next);
    }
  }

 private:
  static void SplitOnce(const CompiledStep& step,
                        std::string_view piece,
                        std::vector<std::string_view>& out) {
    std::size_t last = 0;
    const auto match = [&](std::size_t begin, std::size_t end) {
      if (begin > last) out.push_back(piece.substr(last, begin - last));
      if (step.kind != PreTokenStep::Kind::kRegexRemoved)
        out.push_back(piece.substr(begin, end - begin));
      last = end;
    };
    if (step.kind == PreTokenStep::Kind::kDigitsIndividual) {
      ForEachDigit(piece, match);
    } else {
      step.regex->ForEach(piece, match);
    }
    if (last < piece.size()) out.push_back(piece.substr(last));
  }

  std::vector<CompiledStep> steps_;
};

}  // namespace

StatusOr<NamedPreTokenizer> PreTokenizerByName(std::string_view gguf_pre) {
  const auto found = Named().find(gguf_pre);
  if (found != Named().end()) return found->second;
  std::set<std::string> names;
  for (const auto& [name, steps] : Named()) names.insert(name);
  return base::UnimplementedError(
      fmt::format("pre-tokenizer '{}' is not supported; the nearest supported one is '{}'",
                  gguf_pre,
                  base::Nearest(gguf_pre, names)));
}

StatusOr<std::unique_ptr<const PreTokenizer>> PreTokenizer::Create(
    const std::vector<PreTokenStep>& steps) {
  std::vector<CompiledStep> compiled;
  for (const PreTokenStep& step : steps) {
    CompiledStep out{step.kind, std::nullopt};
    switch (step.kind) {
      case PreTokenStep::Kind::kDigitsIndividual:
        break;
      case PreTokenStep::Kind::kByteLevel: {
        HOLMES_ASSIGN_OR_RETURN(out.regex, Regex::Compile(kGpt2));
        out.kind = PreTokenStep::Kind::kRegexIsolated;
        break;
      }
      case PreTokenStep::Kind::kRegexIsolated:
      case PreTokenStep::Kind::kRegexRemoved: {
        HOLMES_ASSIGN_OR_RETURN(out.regex, Regex::Compile(step.pattern));
        break;
      }
    }
    compiled.push_back(std::move(out));
  }
  return std::unique_ptr<const PreTokenizer>(
      std::make_unique<StepsPreTokenizer>(std::move(compiled)));
}

}  // namespace holmes::text
