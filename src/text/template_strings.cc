#include "text/template_strings.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/utf8.h"

namespace holmes::text {
namespace {

template <typename Map>
std::string MapCharacters(std::string_view text, Map&& map) {
  std::vector<char32_t> characters = Characters(text);
  for (std::size_t i = 0; i < characters.size(); ++i) characters[i] = map(characters, i);
  return FromCharacters(characters);
}

char32_t Upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t Lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
bool IsCased(char32_t c) { return Upper(c) != c || Lower(c) != c; }

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
  return MapCharacters(text, [](const auto& all, std::size_t i) { return Upper(all[i]); });
}
std::string ToLower(std::string_view text) {
  return MapCharacters(text, [](const auto& all, std::size_t i) { return Lower(all[i]); });
}
std::string Capitalize(std::string_view text) {
  return MapCharacters(
      text, [](const auto& all, std::size_t i) { return i == 0 ? Upper(all[i]) : Lower(all[i]); });
}
std::string ToTitle(std::string_view text) {
  return MapCharacters(text, [](const auto& all, std::size_t i) {
    return i == 0 || !IsCased(all[i - 1]) ? Upper(all[i]) : Lower(all[i]);
  });
}

std::vector<std::string> SplitText(std::string_view text,
                                   std::string_view separator,
                                   std::int64_t limit,
                                   bool from_right) {
  std::vector<std::string> out;
  if (separator.empty()) {
    std::string stripped = Strip(text, "", true, true);
    std::string_view left = stripped;
    const auto is_space = [](char c) {
      return IsPythonSpace(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 0x80;
    };
    while (!left.empty()) {
      const bool last = limit >= 0 && static_cast<std::int64_t>(out.size()) == limit;
      const auto end = last ? left.end() : std::find_if(left.begin(), left.end(), is_space);
      out.emplace_back(left.begin(), end);
      left.remove_prefix(static_cast<std::size_t>(end - left.begin()));
      while (!left.empty() && is_space(left[0])) left.remove_prefix(1);
    }
    return out;
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
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n' && text[i] != '\r') continue;
    const std::size_t length =
        text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n' ? 2 : 1;
    out.emplace_back(text.substr(begin, i - begin + (keep_ends ? length : 0)));
    i += length - 1;
    begin = i + 1;
  }
  if (begin < text.size()) out.emplace_back(text.substr(begin));
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
