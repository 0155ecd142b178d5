#include "text/template_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "text/utf8.h"

namespace holmes::text {
namespace {

bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsNameChar(char c) { return IsNameStart(c) || std::isdigit(static_cast<unsigned char>(c)); }
bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  StatusOr<std::vector<TemplateToken>> Run() {
    while (at_ < source_.size()) {
      HOLMES_RETURN_IF_ERROR(TextThenTag());
    }
    Add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void Add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  Status Error(std::string message) const {
    return base::InvalidArgumentError(fmt::format("template line {}: {}", line_, message));
  }
  bool Has(std::string_view text) const {
    return std::string_view(source_).substr(at_, text.size()) == text;
  }
  void Advance(std::size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to),
                                         '\n'));
    at_ = to;
  }

  std::size_t FindTag() const {
    for (std::size_t i = at_; i + 1 < source_.size(); ++i) {
      if (source_[i] == '{' &&
          (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#'))
        return i;
    }
    return source_.size();
  }

  Status TextThenTag() {
    const std::size_t tag = FindTag();
    std::string text = source_.substr(at_, tag - at_);
    if (tag == source_.size()) {
      AddText(std::move(text));
      Advance(tag);
      return OkStatus();
    }
    const char kind = source_[tag + 1];
    const char control = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (control == '-') {
      while (!text.empty() && IsSpace(text.back())) text.pop_back();
    } else if (kind != '{' && control != '+') {
      StripBlanks(text);
    }
    AddText(std::move(text));
    Advance(tag + 2);
    if (control == '-' || control == '+') Advance(at_ + 1);
    if (kind == '#') return Comment();
    return Tag(kind);
  }

  /// lstrip_blocks: blanks between the line's start and a block go away.
  void StripBlanks(std::string& text) const {
    std::size_t keep = text.size();
    while (keep > 0 && (text[keep - 1] == ' ' || text[keep - 1] == '\t')) --keep;
    const bool line_start = keep > 0 ? text[keep - 1] == '\n' : at_line_start_;
    if (line_start) text.resize(keep);
  }

  void AddText(std::string text) {
    if (!text.empty()) Add(TokenKind::kText, std::move(text));
  }

  /// After a tag's end: "-" strips all white space that follows, a block's end takes one newline
  /// (trim_blocks).
  void AfterTag(bool strip, bool trim) {
    const std::size_t begin = at_;
    std::size_t to = at_;
    if (strip) {
      while (to < source_.size() && IsSpace(source_[to])) ++to;
    } else if (trim && to < source_.size() && source_[to] == '\n') {
      ++to;
    }
    Advance(to);
    at_line_start_ = to > begin && source_[to - 1] == '\n';
  }

  Status Comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) return Error("a comment is not closed");
    const char before = end > at_ ? source_[end - 1] : '\0';
    Advance(end + 2);
    AfterTag(before == '-', before != '+');
    return OkStatus();
  }

  Status Tag(char kind) {
    const bool block = kind == '%';
    const std::size_t first = tokens_.size();
    Add(block ? TokenKind::kBlockBegin : TokenKind::kOutputBegin, "");
    const std::string close = block ? "%}" : "}}";
    int depth = 0;  // of braces: {{ {"a": {}} }}
    while (true) {
      while (at_ < source_.size() && IsSpace(source_[at_])) Advance(at_ + 1);
      if (at_ >= source_.size()) return Error("a tag is not closed");
      const bool minus = Has("-" + close) && depth == 0;
      const bool plus = Has("+" + close) && depth == 0;
      if (minus || plus || (Has(close) && depth == 0)) {
        Advance(at_ + close.size() + (minus || plus ? 1 : 0));
        Add(block ? TokenKind::kBlockEnd : TokenKind::kOutputEnd, "");
        const bool raw = block && tokens_.size() == first + 3 && tokens_[first + 1].text == "raw";
        AfterTag(minus, block && !plus && !raw);
        return raw ? Raw(first) : OkStatus();
      }
      if (source_[at_] == '{') ++depth;
      if (source_[at_] == '}') --depth;
      HOLMES_RETURN_IF_ERROR(Token());
    }
  }

  /// Everything up to {% endraw %} is text.
  Status Raw(std::size_t first) {
    tokens_.resize(first);
    for (std::size_t tag = source_.find("{%", at_); tag != std::string::npos;
         tag = source_.find("{%", tag + 2)) {
      std::size_t i = tag + 2;
      if (i < source_.size() && (source_[i] == '-' || source_[i] == '+')) ++i;
      while (i < source_.size() && IsSpace(source_[i])) ++i;
      if (source_.compare(i, 6, "endraw") != 0) continue;
      const std::size_t close = source_.find("%}", i);
      if (close == std::string::npos) break;
      std::string text = source_.substr(at_, tag - at_);
      if (source_[tag + 2] == '-') {
        while (!text.empty() && IsSpace(text.back())) text.pop_back();
      } else if (source_[tag + 2] != '+') {
        StripBlanks(text);
      }
      AddText(std::move(text));
      Advance(close + 2);
      AfterTag(source_[close - 1] == '-', source_[close - 1] != '+');
      return OkStatus();
    }
    return Error("a raw block is not closed");
  }

  Status Token() {
    const char c = source_[at_];
    std::size_t end = at_;
    if (IsNameStart(c)) {
      while (end < source_.size() && IsNameChar(source_[end])) ++end;
      Add(TokenKind::kName, source_.substr(at_, end - at_));
      Advance(end);
      return OkStatus();
    }
    if (std::isdigit(static_cast<unsigned char>(c))) return Number();
    if (c == '\'' || c == '"') return String(c);
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
        ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ".", ":", "|", ";"};
    for (const std::string_view op : kOperators) {
      if (!Has(op)) continue;
      Add(TokenKind::kOperator, std::string(op));
      Advance(at_ + op.size());
      return OkStatus();
    }
    return Error(fmt::format("unexpected character '{}'", c));
  }

  /// 0x1f, 0b101 and 0o17, where they fit; they become decimal digits.
  bool Based() {
    if (at_ + 2 >= source_.size() || source_[at_] != '0') return false;
    const char letter = static_cast<char>(source_[at_ + 1] | 0x20);
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (base == 0) return false;
    std::size_t end = at_ + 2;
    while (end < source_.size() &&
           (std::isxdigit(static_cast<unsigned char>(source_[end])) || source_[end] == '_'))
      ++end;
    std::string digits = source_.substr(at_ + 2, end - at_ - 2);
    std::erase(digits, '_');
    std::int64_t value = 0;
    const char* last = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), last, value, base);
    if (digits.empty() || error != std::errc() || stop != last) return false;
    Add(TokenKind::kInteger, std::to_string(value));
    Advance(end);
    return true;
  }

  Status Number() {
    if (Based()) return OkStatus();
    std::size_t end = at_;
    const auto digits = [&] {
      while (end < source_.size() &&
             (std::isdigit(static_cast<unsigned char>(source_[end])) || source_[end] == '_'))
        ++end;
    };
    digits();
    bool is_float = false;
    if (end + 1 < source_.size() && source_[end] == '.' &&
        std::isdigit(static_cast<unsigned char>(source_[end + 1]))) {
      is_float = true;
      ++end;
      digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-'))
        ++exponent;
      if (exponent < source_.size() &&
          std::isdigit(static_cast<unsigned char>(source_[exponent]))) {
        is_float = true;
        end = exponent;
        digits();
      }
    }
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    Add(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(text));
    Advance(end);
    return OkStatus();
  }

  /// Python's escapes, as far as text has them.
  Status String(char quote) {
    std::string out;
    std::size_t i = at_ + 1;
    while (true) {
      if (i >= source_.size()) return Error("a string is not closed");
      const char c = source_[i];
      if (c == quote) break;
      if (c != '\\' || i + 1 >= source_.size()) {
        out.push_back(c);
        ++i;
        continue;
      }
      i = Escape(i + 1, out);
    }
    Add(TokenKind::kString, std::move(out));
    Advance(i + 1);
    return OkStatus();
  }

  /// Decodes the escape whose letter is at `i`; returns where the text goes on.
  std::size_t Escape(std::size_t i, std::string& out) const {
    const char c = source_[i];
    static constexpr std::string_view kFrom = "ntrabfv0\\'\"";
    static constexpr std::string_view kTo{"\n\t\r\a\b\f\v\0\\'\"", 11};
    if (const auto found = kFrom.find(c); found != std::string_view::npos) {
      out.push_back(kTo[found]);
      return i + 1;
    }
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    unsigned value = 0;
    if (digits > 0 && i + digits < source_.size()) {
      const char* first = source_.data() + i + 1;
      const auto [end, error] = std::from_chars(first, first + digits, value, 16);
      if (error == std::errc() && end == first + digits && value < 0x110000) {
        AppendUtf8(value, out);
        return i + 1 + digits;
      }
    }
    if (c != '\n') {  // an unknown escape stays; a newline after a backslash goes away
      out.push_back('\\');
      out.push_back(c);
    }
    return i + 1;
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;  // whether the text that begins at at_ begins a line
  std::vector<TemplateToken> tokens_;
};

}  // namespace

StatusOr<std::vector<TemplateToken>> LexTemplate(std::string_view source) {
  std::string normal;
  normal.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      normal.push_back(source[i]);
    } else if (i + 1 >= source.size() || source[i + 1] != '\n') {
      normal.push_back('\n');
    }
  }
  if (!normal.empty() && normal.back() == '\n') normal.pop_back();
  return Lexer(std::move(normal)).Run();
}

}  // namespace holmes::text
