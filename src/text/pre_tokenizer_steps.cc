#include <utf8proc.h>

#include <optional>
#include <utility>

#include "text/pre_tokenizer.h"
#include "text/regex.h"
#include "text/utf8.h"

namespace holmes::text {
namespace {

/// How a ByteLevel step cuts by itself.
constexpr const char* kByteLevelWords =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

bool IsNumber(char32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

/// The next character of category N at or after `at`.
bool NextNumber(std::string_view text, std::size_t at, std::size_t& begin, std::size_t& end) {
  while (at < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(at));
    begin = at;
    end = at + static_cast<std::size_t>(step.length);
    if (step.kind == Utf8Step::Kind::kCharacter && IsNumber(step.code_point)) return true;
    at = end;
  }
  return false;
}

struct CompiledStep {
  bool removes_matches = false;
  std::optional<Regex> regex;  // empty: numbers
};

class StepsPreTokenizer final : public PreTokenizer {
 public:
  explicit StepsPreTokenizer(std::vector<CompiledStep> steps) : steps_(std::move(steps)) {}

  void Split(std::string_view text, std::vector<std::string_view>& pieces) const override {
    pieces.assign(text.empty() ? 0 : 1, text);
    std::vector<std::string_view> next;
    for (const CompiledStep& step : steps_) {
      next.clear();
      if (step.regex) {
        Regex::Searcher searcher(*step.regex);
        const auto find = [&](std::string_view piece, std::size_t at, auto& begin, auto& end) {
          return searcher.Next(piece, at, begin, end);
        };
        for (const std::string_view piece : pieces)
          SplitOnce(piece, step.removes_matches, find, next);
      } else {
        for (const std::string_view piece : pieces) SplitOnce(piece, false, NextNumber, next);
      }
      pieces.swap(next);
    }
  }

 private:
  template <typename Find>
  static void SplitOnce(std::string_view piece,
                        bool removes_matches,
                        const Find& find,
                        std::vector<std::string_view>& out) {
    std::size_t last = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
    while (last < piece.size() && find(piece, last, begin, end)) {
      if (begin > last) out.push_back(piece.substr(last, begin - last));
      if (!removes_matches) out.push_back(piece.substr(begin, end - begin));
      last = end;
    }
    if (last < piece.size()) out.push_back(piece.substr(last));
  }

  std::vector<CompiledStep> steps_;
};

}  // namespace

StatusOr<std::unique_ptr<const PreTokenizer>> PreTokenizer::Create(
    const std::vector<PreTokenStep>& steps) {
  std::vector<CompiledStep> compiled;
  for (const PreTokenStep& step : steps) {
    CompiledStep out;
    if (step.kind != PreTokenStep::Kind::kDigitsIndividual) {
      const bool byte_level = step.kind == PreTokenStep::Kind::kByteLevel;
      auto regex = Regex::Compile(byte_level ? kByteLevelWords : step.pattern);
      if (!regex.ok()) return regex.status();
      out.regex.emplace(*std::move(regex));
      out.removes_matches = step.kind == PreTokenStep::Kind::kRegexRemoved;
    }
    compiled.push_back(std::move(out));
  }
  return std::unique_ptr<const PreTokenizer>(
      std::make_unique<StepsPreTokenizer>(std::move(compiled)));
}

}  // namespace holmes::text
