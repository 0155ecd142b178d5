#include "text/regex.h"

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/log.h"
#include "text/utf8.h"

namespace holmes::text {
namespace {

struct CodeFree {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct CompileContextFree {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};
struct MatchFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
using CodePtr = std::unique_ptr<pcre2_code, CodeFree>;

/// `offset` is where compiling stopped.
CodePtr CompilePcre(std::string_view pattern, int& error, std::size_t& offset) {
  const std::unique_ptr<pcre2_compile_context, CompileContextFree> context(
      pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 100);
  // Ruby's ^ and $ match at every line.
  return CodePtr(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                               pattern.size(),
                               PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                               &error,
                               &offset,
                               context.get()));
}

bool Compiles(const std::string& pattern) {
  int error = 0;
  std::size_t offset = 0;
  return CompilePcre(pattern, error, offset) != nullptr;
}

/// White_Space of Unicode; spelled out because a range is looked up faster than a property.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
/// In brackets. Alone, Oniguruma's \w also has six numbers of Latin-1, by a table of its own.
constexpr std::string_view kWordInBrackets = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view kWord =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

/// Walks a pattern and rewrites the escapes that differ.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  StatusOr<std::string> Run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\' && at_ + 1 < pattern_.size()) {
        HOLMES_RETURN_IF_ERROR(Escape());
        continue;
      }
      if (c == '(' && !in_brackets_) HOLMES_RETURN_IF_ERROR(CheckGroup());
      // Sets of sets are Ruby's; PCRE2 would read them as characters.
      if (in_brackets_ && (c == '[' || pattern_.substr(at_, 2) == "&&"))
        return Refuse("brackets or '&&' inside brackets");
      if (!in_brackets_ && pattern_.substr(at_, 2) == "}+")
        return Refuse("a '+' on a count, which is possessive in one library only");
      if (c == '[') in_brackets_ = true;
      if (c == ']') in_brackets_ = false;
      out_.push_back(c);
      ++at_;
      if (c == '[') TakeFirstInBrackets();
    }
    return std::move(out_);
  }

 private:
  Status Refuse(std::string_view what) const {
    return base::UnimplementedError(
        fmt::format("pre-tokenizer pattern '{}' uses {} at offset {}, which is not supported",
                    pattern_,
                    what,
                    at_));
  }

  /// "[]" and "[^]" begin with a literal bracket.
  void TakeFirstInBrackets() {
    if (at_ < pattern_.size() && pattern_[at_] == '^') out_.push_back(pattern_[at_++]);
    if (at_ < pattern_.size() && pattern_[at_] == ']') out_.push_back(pattern_[at_++]);
  }

  Status CheckGroup() const {
    const std::string_view rest = pattern_.substr(at_ + 1);
    if (rest.starts_with('*')) return Refuse("a verb");
    if (!rest.starts_with('?')) return OkStatus();
    const char kind = rest.size() > 1 ? rest[1] : '\0';
    const bool signed_number =
        (kind == '-' || kind == '+') && rest.size() > 2 && rest[2] >= '0' && rest[2] <= '9';
    if (kind == 'R' || kind == '&' || kind == 'P' || (kind >= '0' && kind <= '9') || signed_number)
      return Refuse("a subroutine or a named group");
    if (kind == 'C') return Refuse("a callout");
    if (kind == '(') return Refuse("a condition");
    return OkStatus();
  }

  Status Escape() {
    const char kind = pattern_[at_ + 1];
    const bool inside = in_brackets_;
    switch (kind) {
      case 's':
        return Put(inside ? std::string(kSpaces) : fmt::format("[{}]", kSpaces));
      case 'S':
        return Put(inside ? R"(\P{White_Space})" : fmt::format("[^{}]", kSpaces));
      case 'w':
        return Put(inside ? std::string(kWordInBrackets) : fmt::format("[{}]", kWord));
      case 'W':
        if (inside) return Refuse("\\W inside brackets");
        return Put(fmt::format("[^{}]", kWord));
      case 'h':
        return Put(inside ? "0-9A-Fa-f" : "[0-9A-Fa-f]");
      case 'H':
        if (inside) return Refuse("\\H inside brackets");
        return Put("[^0-9A-Fa-f]");
      case 'b':
        return Put(inside ? "\\b" : WordBoundary());
      case 'B':
        return Put(inside ? "\\B" : fmt::format("(?!{})", WordBoundary()));
      case 'x':
        return CodePoint();
      case 'p':
      case 'P':
        return Property();
      case 'K':
      case 'g':
      case 'k':
        return Refuse(fmt::format("\\{}", kind));
      case 'Q':
      case 'E':
        return Put(std::string(1, kind));  // a plain letter in Ruby
      default:
        return Put(std::string(pattern_.substr(at_, 2)));
    }
  }

  static std::string WordBoundary() {
    return fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWord);
  }

  /// \x41 or \x{1F600}, as it is: its brace is no count.
  Status CodePoint() {
    const std::size_t close = pattern_.find('}', at_);
    const bool braced = pattern_.substr(at_ + 2, 1) == "{" && close != std::string_view::npos;
    const std::size_t length = braced ? close + 1 - at_ : 2;
    out_ += pattern_.substr(at_, length);
    at_ += length;
    return OkStatus();
  }

  /// The escape of two characters under `at_` becomes `text`.
  Status Put(const std::string& text) {
    out_ += text;
    at_ += 2;
    return OkStatus();
  }

  /// A script's name means its own characters, not those that it shares with others.
  Status Property() {
    const std::size_t close = pattern_.find('}', at_);
    if (pattern_.substr(at_ + 2, 1) != "{" || close == std::string_view::npos || close - at_ > 40)
      return Put(std::string(pattern_.substr(at_, 2)));
    std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    const std::string script = fmt::format("sc:{}}}", name);
    const bool is_script = name.size() > 2 && Compiles("\\p{" + script);
    out_ += fmt::format("\\{}{{{}", pattern_[at_ + 1], negated ? "^" : "");
    out_ += is_script ? script : fmt::format("{}}}", name);
    at_ = close + 1;
    return OkStatus();
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  bool in_brackets_ = false;
  std::string out_;
};

}  // namespace

StatusOr<std::string> TranslatePattern(std::string_view pattern) {
  return Translator(pattern).Run();
}

struct Regex::Code {
  CodePtr pcre;
};

struct Regex::Searcher::Memory {
  std::unique_ptr<pcre2_match_data, MatchFree> data{pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, MatchFree> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, MatchFree> stack;  // made when PCRE2's own 32 KiB do not do
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

StatusOr<Regex> Regex::Compile(std::string_view pattern) {
  if (!IsValidUtf8(pattern))
    return base::InvalidArgumentError("a pre-tokenizer pattern is not valid UTF-8");
  HOLMES_ASSIGN_OR_RETURN(const std::string translated, TranslatePattern(pattern));
  int error = 0;
  std::size_t offset = 0;
  auto code = std::make_unique<Code>();
  code->pcre = CompilePcre(translated, error, offset);
  if (code->pcre == nullptr) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    return base::InvalidArgumentError(
        fmt::format("pre-tokenizer pattern '{}' (as '{}') fails at offset {}: {}",
                    pattern,
                    translated,
                    offset,
                    reinterpret_cast<const char*>(text.data())));
  }
  // Without JIT the interpreter runs; only speed differs.
  pcre2_jit_compile(code->pcre.get(), PCRE2_JIT_COMPLETE);
  return Regex(std::move(code));
}

Regex::Searcher::Searcher(const Regex& regex) : regex_(regex), memory_(std::make_unique<Memory>()) {
  pcre2_set_heap_limit(memory_->context.get(), 256 * 1024);  // KiB, for the interpreter
}
Regex::Searcher::~Searcher() = default;

bool Regex::Searcher::Next(std::string_view text,
                           std::size_t at,
                           std::size_t& begin,
                           std::size_t& end) {
  constexpr std::size_t kStepsPerByte = 100;
  constexpr std::size_t kMaxJitStack = 16U << 20;
  const std::size_t limit = 10'000 + kStepsPerByte * text.size();
  pcre2_set_match_limit(memory_->context.get(),
                        static_cast<std::uint32_t>(std::min<std::size_t>(limit, 0xFFFFFFFFU)));
  const auto search = [&](std::uint32_t options) {
    return pcre2_match(regex_.code_->pcre.get(),
                       reinterpret_cast<PCRE2_SPTR>(text.data()),
                       text.size(),
                       at,
                       PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | options,
                       memory_->data.get(),
                       memory_->context.get());
  };
  int found = search(0);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT && memory_->stack == nullptr) {
    memory_->stack.reset(pcre2_jit_stack_create(32U << 10, kMaxJitStack, nullptr));
    pcre2_jit_stack_assign(memory_->context.get(), nullptr, memory_->stack.get());
    found = search(0);
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = search(PCRE2_NO_JIT);
  if (found < 0) {
    if (found != PCRE2_ERROR_NOMATCH)
      base::LogWarning("a pre-tokenizer pattern gave up on {} bytes of text (PCRE2 error {})",
                       text.size() - at,
                       found);
    return false;
  }
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(memory_->data.get());
  begin = range[0];
  end = range[1];
  return begin >= at && end > begin && end <= text.size();
}

}  // namespace holmes::text
