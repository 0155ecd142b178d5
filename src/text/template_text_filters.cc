#include <fmt/format.h>

#include <algorithm>

#include "text/template_filters.h"
#include "text/template_format.h"
#include "text/template_strings.h"

namespace holmes::text {
using Result = StatusOr<Value>;

std::int64_t IntegerArgument(const Arguments& arguments,
                             std::size_t index,
                             std::string_view name,
                             std::int64_t fallback) {
  const Value* value = FindArgument(arguments, index, name);
  return value != nullptr && value->is_number() ? value->as_int() : fallback;
}

std::string TextArgument(const Arguments& arguments,
                         std::size_t index,
                         std::string_view name,
                         std::string_view fallback) {
  const Value* value = FindArgument(arguments, index, name);
  return value != nullptr && !value->is_none() ? value->ToString() : std::string(fallback);
}

bool FlagArgument(const Arguments& arguments, std::size_t index, std::string_view name) {
  const Value* value = FindArgument(arguments, index, name);
  return value != nullptr && value->Truthy();
}

Result Indent(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  const Value* width = FindArgument(arguments, 0, "width");
  std::string pad = width != nullptr && width->is_string()
                        ? width->as_string()
                        : std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(
                                          IntegerArgument(arguments, 0, "width", 4), 0, 1000)),
                                      ' ');
  if (IntegerArgument(arguments, 0, "width", 4) > 1000)
    return base::ResourceExhaustedError("indent: more than 1000 blanks are not supported");
  const bool first = FlagArgument(arguments, 1, "first");
  const bool blank = FlagArgument(arguments, 2, "blank");
  const std::string text = input.ToString();
  std::string out;
  const std::vector<std::string> lines = SplitText(text, "\n", -1, false);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += "\n";
    if ((i > 0 || first) && (blank || !lines[i].empty())) out += pad;
    out += lines[i];
    HOLMES_RETURN_IF_ERROR(budget.CheckSize(out.size()));
  }
  return Value(std::move(out));
}

Result Escape(const Value& input, const Arguments&, RenderBudget&) {
  std::string out;
  for (const char c : input.ToString()) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out.push_back(c);
    }
  }
  return Value(std::move(out));
}

Result Trim(const Value& input, const Arguments& arguments, RenderBudget&) {
  return Value(Strip(input.ToString(), TextArgument(arguments, 0, "chars", ""), true, true));
}

Result Replace(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  const std::string text = input.ToString();
  const std::string from = TextArgument(arguments, 0, "old", "");
  const std::string to = TextArgument(arguments, 1, "new", "");
  HOLMES_RETURN_IF_ERROR(
      budget.CheckSize(to.size() * (from.empty() ? text.size() + 1 : text.size() / from.size())));
  return Value(ReplaceText(text, from, to, IntegerArgument(arguments, 2, "count", -1)));
}

Result FormatFilter(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    return base::InvalidArgumentError(
        "can't handle positional and keyword arguments at the same time");
  const Value values =
      arguments.named.empty() ? Value::Tuple(arguments.positional) : Value(Dict(arguments.named));
  HOLMES_ASSIGN_OR_RETURN(std::string out, FormatPercent(input.ToString(), values, budget));
  return Value(std::move(out));
}

Result Center(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  const Value width(IntegerArgument(arguments, 0, "width", 80));
  HOLMES_ASSIGN_OR_RETURN(std::optional<Value> out,
                          CallMethod(Value(input.ToString()), "center", {{width}, {}}, budget));
  return out.value_or(Value());
}

Result Truncate(const Value& input, const Arguments& arguments, RenderBudget&) {
  const std::int64_t length = IntegerArgument(arguments, 0, "length", 255);
  const std::string end = TextArgument(arguments, 2, "end", "...");
  const std::int64_t leeway = IntegerArgument(arguments, 3, "leeway", 5);
  std::vector<char32_t> characters = Characters(input.ToString());
  const std::int64_t keep = length - static_cast<std::int64_t>(Characters(end).size());
  if (keep < 0 || leeway < 0)
    return base::InvalidArgumentError("truncate: the length or the leeway is too small");
  const auto size = static_cast<std::int64_t>(characters.size());
  if (size <= length || size - length <= leeway) return Value(input.ToString());
  characters.resize(static_cast<std::size_t>(keep));
  if (!FlagArgument(arguments, 1, "killwords")) {
    const auto blank = std::find(characters.rbegin(), characters.rend(), U' ');
    if (blank != characters.rend()) characters.erase(blank.base() - 1, characters.end());
  }
  return Value(FromCharacters(characters) + end);
}

Result WordCount(const Value& input, const Arguments&, RenderBudget&) {
  std::int64_t out = 0;
  bool inside = false;
  for (const char32_t c : Characters(input.ToString())) {
    const bool word = IsWordCharacter(c);
    out += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value(out);
}

Result UrlEncode(const Value& input, const Arguments&, RenderBudget& budget) {
  if (!input.is_string() && !input.is_number())
    return base::UnimplementedError("urlencode of what is no text is not supported");
  std::string out;
  for (const char c : input.ToString()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    HOLMES_RETURN_IF_ERROR(budget.CheckSize(out.size()));
  }
  return Value(std::move(out));
}

}  // namespace holmes::text
