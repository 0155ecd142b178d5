#include "text/template_strings.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace holmes::text {
namespace {

char32_t Upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t Lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
bool IsCased(char32_t c) { return Upper(c) != c || Lower(c) != c; }

enum class Case { kUpper, kLower, kTitle };

/// Capitals of more than one character; Unicode's SpecialCasing has the rest of them.
struct LongCapital {
  char32_t small;
  std::string_view upper;
  std::string_view title;
};
constexpr LongCapital kLongCapitals[] = {{0xDF, "SS", "Ss"},
                                         {0x149, "\u02BCN", "\u02BCN"},
                                         {0xFB00, "FF", "Ff"},
                                         {0xFB01, "FI", "Fi"},
                                         {0xFB02, "FL", "Fl"},
                                         {0xFB03, "FFI", "Ffi"},
                                         {0xFB04, "FFL", "Ffl"},
                                         {0xFB05, "ST", "St"},
                                         {0xFB06, "ST", "St"}};

/// A sigma takes its final form after a letter and before none.
bool IsFinalSigma(const std::vector<char32_t>& all, std::size_t i) {
  return all[i] == 0x3A3 && i > 0 && IsCased(all[i - 1]) &&
         (i + 1 == all.size() || !IsCased(all[i + 1]));
}

void AppendCase(const std::vector<char32_t>& all, std::size_t i, Case to, std::string& out) {
  const char32_t c = all[i];
  if (to == Case::kLower) {
    AppendUtf8(IsFinalSigma(all, i) ? 0x3C2 : c == 0x130 ? U'i' : Lower(c), out);
    if (c == 0x130) AppendUtf8(0x307, out);
    return;
  }
  for (const LongCapital& capital : kLongCapitals) {
    if (capital.small != c) continue;
    out += to == Case::kUpper ? capital.upper : capital.title;
    return;
  }
  AppendUtf8(to == Case::kUpper
                 ? Upper(c)
                 : static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))),
             out);
}

template <typename Choose>
std::string MapCharacters(std::string_view text, Choose&& choose) {
  const std::vector<char32_t> characters = Characters(text);
  std::string out;
  for (std::size_t i = 0; i < characters.size(); ++i)
    AppendCase(characters, i, choose(characters, i), out);
  return out;
}

}  // namespace

std::vector<char32_t> Characters(std::string_view text) {
  std::vector<char32_t> out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    out.push_back(step.kind == Utf8Step::Kind::kCharacter ? step.code_point : 0xFFFD);
    text.remove_prefix(static_cast<std::size_t>(step.length));
  }
  return out;
}

std::string FromCharacters(const std::vector<char32_t>& characters) {
  std::string out;
  for (const char32_t c : characters) AppendUtf8(c, out);
  return out;
}

bool IsPythonSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::string Strip(std::string_view text, std::string_view chars, bool left, bool right) {
  const std::vector<char32_t> set = Characters(chars);
  const auto drops = [&](char32_t c) {
    return chars.empty() ? IsPythonSpace(c) : std::find(set.begin(), set.end(), c) != set.end();
  };
  std::vector<char32_t> characters = Characters(text);
  auto begin = characters.begin();
  auto end = characters.end();
  while (left && begin != end && drops(*begin)) ++begin;
  while (right && begin != end && drops(*(end - 1))) --end;
  return FromCharacters({begin, end});
}

std::string ToUpper(std::string_view text) {
  return MapCharacters(text, [](const auto&, std::size_t) { return Case::kUpper; });
}
std::string ToLower(std::string_view text) {
  return MapCharacters(text, [](const auto&, std::size_t) { return Case::kLower; });
}
std::string Capitalize(std::string_view text) {
  return MapCharacters(
      text, [](const auto&, std::size_t i) { return i == 0 ? Case::kTitle : Case::kLower; });
}
std::string ToTitle(std::string_view text) {
  return MapCharacters(text, [](const auto& all, std::size_t i) {
    return i == 0 || !IsCased(all[i - 1]) ? Case::kTitle : Case::kLower;
  });
}

std::string SwapCase(std::string_view text) {
  return MapCharacters(text, [](const auto& all, std::size_t i) {
    return Lower(all[i]) != all[i] ? Case::kLower : Case::kUpper;
  });
}
bool IsNumeric(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}
bool IsWordCharacter(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return c == '_' || IsNumeric(c) || category == UTF8PROC_CATEGORY_LU ||
         category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT ||
         category == UTF8PROC_CATEGORY_LM || category == UTF8PROC_CATEGORY_LO;
}
std::string TitleWords(std::string_view text) {
  bool begins = true;
  return MapCharacters(text, [&](const auto& all, std::size_t i) {
    const char32_t c = all[i];
    const bool first = std::exchange(
        begins, IsPythonSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<');
    return first ? Case::kUpper : Case::kLower;
  });
}

namespace {

std::vector<std::string> SplitAtSpace(std::vector<char32_t> characters,
                                      std::int64_t limit,
                                      bool from_right) {
  // From the right is from the left in the mirror.
  if (from_right) std::reverse(characters.begin(), characters.end());
  std::vector<std::string> out;
  auto at = characters.begin();
  while (true) {
    at = std::find_if_not(at, characters.end(), IsPythonSpace);
    if (at == characters.end()) break;
    const bool last = limit >= 0 && static_cast<std::int64_t>(out.size()) == limit;
    const auto end = last ? characters.end() : std::find_if(at, characters.end(), IsPythonSpace);
    std::vector<char32_t> word(at, end);
    if (from_right) std::reverse(word.begin(), word.end());
    out.push_back(FromCharacters(word));
    at = end;
  }
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<std::string> SplitText(std::string_view text,
                                   std::string_view separator,
                                   std::int64_t limit,
                                   bool from_right) {
  std::vector<std::string> out;
  if (separator.empty()) {
    return SplitAtSpace(Characters(text), limit, from_right);
  }
  if (from_right) {
    std::size_t end = text.size();
    while (limit < 0 || static_cast<std::int64_t>(out.size()) < limit) {
      const std::size_t at = end < separator.size() ? std::string_view::npos
                                                    : text.rfind(separator, end - separator.size());
      if (at == std::string_view::npos) break;
      out.emplace_back(text.substr(at + separator.size(), end - at - separator.size()));
      end = at;
    }
    out.emplace_back(text.substr(0, end));
    std::reverse(out.begin(), out.end());
    return out;
  }
  std::size_t begin = 0;
  while (limit < 0 || static_cast<std::int64_t>(out.size()) < limit) {
    const std::size_t at = text.find(separator, begin);
    if (at == std::string_view::npos) break;
    out.emplace_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  out.emplace_back(text.substr(begin));
  return out;
}

std::vector<std::string> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string> out;
  std::string line;
  const std::vector<char32_t> characters = Characters(text);
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const char32_t c = characters[i];
    const bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    if (!ends || keep_ends) AppendUtf8(c, line);
    if (!ends) continue;
    if (c == '\r' && i + 1 < characters.size() && characters[i + 1] == '\n') {
      ++i;
      if (keep_ends) line.push_back('\n');
    }
    out.push_back(std::exchange(line, {}));
  }
  if (!line.empty()) out.push_back(std::move(line));
  return out;
}

std::string ReplaceText(std::string_view text,
                        std::string_view from,
                        std::string_view to,
                        std::int64_t limit) {
  std::string out;
  if (from.empty()) {  // between all characters, as Python does
    std::int64_t done = 0;
    for (const char32_t c : Characters(text)) {
      if (limit < 0 || done++ < limit) out += to;
      AppendUtf8(c, out);
    }
    if (limit < 0 || done < limit) out += to;
    return out;
  }
  std::size_t begin = 0;
  for (std::int64_t done = 0; limit < 0 || done < limit; ++done) {
    const std::size_t at = text.find(from, begin);
    if (at == std::string_view::npos) break;
    out += text.substr(begin, at - begin);
    out += to;
    begin = at + from.size();
  }
  out += text.substr(begin);
  return out;
}

}  // namespace holmes::text
