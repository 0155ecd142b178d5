/// Python's string operations on UTF-8. Internal to text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holmes::text {

std::vector<char32_t> Characters(std::string_view text);
std::string FromCharacters(const std::vector<char32_t>& characters);
bool IsPythonSpace(char32_t c);
/// `chars` empty = white space.
std::string Strip(std::string_view text, std::string_view chars, bool left, bool right);
std::string ToUpper(std::string_view text);
std::string ToLower(std::string_view text);
std::string ToTitle(std::string_view text);
std::string Capitalize(std::string_view text);
std::string SwapCase(std::string_view text);
bool IsNumeric(char32_t c);
/// Of \w: letters, digits and _.
bool IsWordCharacter(char32_t c);
/// jinja2's title: capitals after white space and after -({[<, nowhere else.
std::string TitleWords(std::string_view text);
/// `limit` < 0 = all. Empty `separator`: runs of white space, none at the ends.
std::vector<std::string> SplitText(std::string_view text,
                                   std::string_view separator,
                                   std::int64_t limit,
                                   bool from_right);
std::vector<std::string> SplitLines(std::string_view text, bool keep_ends);
std::string ReplaceText(std::string_view text,
                        std::string_view from,
                        std::string_view to,
                        std::int64_t limit);

}  // namespace holmes::text
