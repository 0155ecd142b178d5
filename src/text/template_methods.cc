#include <fmt/format.h>

#include <algorithm>

#include "text/template_builtins.h"
#include "text/template_format.h"
#include "text/template_strings.h"

namespace holmes::text {
namespace {

using Result = StatusOr<std::optional<Value>>;

Value ToList(std::vector<std::string> parts) {
  List out;
  for (std::string& part : parts) out.emplace_back(std::move(part));
  return out;
}

Result Ok(Value value) { return std::optional<Value>(std::move(value)); }
Status TypeError(std::string message) { return base::InvalidArgumentError(std::move(message)); }

/// A string argument; "" when absent or none.
StatusOr<std::string> Text(const Arguments& arguments,
                           std::size_t index,
                           std::string_view name,
                           bool required) {
  const Value* value = FindArgument(arguments, index, name);
  if (value == nullptr || (value->is_none() && !required)) {
    if (required) return TypeError(fmt::format("the argument '{}' is missing", name));
    return std::string();
  }
  if (!value->is_string())
    return TypeError(
        fmt::format("the argument '{}' must be str, not {}", name, value->type_name()));
  return value->as_string();
}

std::int64_t Limit(const Arguments& arguments, std::size_t index, std::string_view name) {
  const Value* value = FindArgument(arguments, index, name);
  return value != nullptr && value->is_number() ? value->as_int() : -1;
}

struct Part {
  std::string text;
  std::int64_t begin = 0;  // in characters
};

/// What the arguments `start` and `end`, second and third, leave of the text; empty when the start
/// lies behind the text's or the part's end.
StatusOr<std::optional<Part>> PartOf(const std::string& text, const Arguments& arguments) {
  if (arguments.positional.size() < 2) return std::optional<Part>(Part{text, 0});
  const std::vector<char32_t> characters = Characters(text);
  const auto size = static_cast<std::int64_t>(characters.size());
  std::int64_t bounds[2] = {0, size};
  for (std::size_t i = 0; i < 2 && i + 1 < arguments.positional.size(); ++i) {
    const Value& bound = arguments.positional[i + 1];
    if (bound.is_none()) continue;
    if (!bound.is_number() || bound.is_float())
      return TypeError("slice indices must be integers or None");
    bounds[i] =
        bound.as_int() < 0 ? std::max<std::int64_t>(bound.as_int() + size, 0) : bound.as_int();
  }
  bounds[1] = std::min(bounds[1], size);
  if (bounds[0] > bounds[1]) return std::optional<Part>();
  return std::optional<Part>(Part{
      FromCharacters({characters.begin() + bounds[0], characters.begin() + bounds[1]}), bounds[0]});
}

/// startswith and endswith take one string or several.
Result Affix(const std::string& whole, const Arguments& arguments, bool start) {
  if (arguments.positional.empty()) return TypeError("startswith and endswith need a string");
  HOLMES_ASSIGN_OR_RETURN(const std::optional<Part> part, PartOf(whole, arguments));
  if (!part) return Ok(false);
  const std::string text = part->text;
  const Value& given = arguments.positional[0];
  const List options = given.is_list() ? given.as_list() : List{given};
  for (const Value& option : options) {
    if (!option.is_string())
      return TypeError(
          fmt::format("startswith and endswith need strings, not {}", option.type_name()));
    const std::string& affix = option.as_string();
    if (start ? text.starts_with(affix) : text.ends_with(affix)) return Ok(true);
  }
  return Ok(false);
}

template <typename Predicate>
bool AllCharacters(const std::string& text, Predicate&& predicate) {
  const std::vector<char32_t> characters = Characters(text);
  return !characters.empty() && std::all_of(characters.begin(), characters.end(), predicate);
}

Result CaseOrKind(const std::string& text, std::string_view name) {
  if (name == "upper") return Ok(ToUpper(text));
  if (name == "lower") return Ok(ToLower(text));
  if (name == "title") return Ok(ToTitle(text));
  if (name == "capitalize") return Ok(Capitalize(text));
  if (name == "swapcase") return Ok(SwapCase(text));
  if (name == "isnumeric") return Ok(AllCharacters(text, IsNumeric));
  if (name == "isdigit" || name == "isdecimal")
    return Ok(AllCharacters(text, [](char32_t c) { return c >= '0' && c <= '9'; }));
  if (name == "isspace") return Ok(AllCharacters(text, IsPythonSpace));
  if (name == "isalpha")
    return Ok(AllCharacters(text, [](char32_t c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c > 0x7F;
    }));
  if (name == "isalnum")
    return Ok(AllCharacters(text, [](char32_t c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c > 0x7F;
    }));
  if (name == "isupper") return Ok(text == ToUpper(text) && text != ToLower(text));
  if (name == "islower") return Ok(text == ToLower(text) && text != ToUpper(text));
  return std::optional<Value>();
}

Result Search(const std::string& whole, std::string_view name, const Arguments& arguments) {
  HOLMES_ASSIGN_OR_RETURN(const std::string part, Text(arguments, 0, "sub", true));
  HOLMES_ASSIGN_OR_RETURN(const std::optional<Part> inside, PartOf(whole, arguments));
  const bool must_be_there = name == "index" || name == "rindex";
  if (!inside && name == "count") return Ok(std::int64_t{0});
  if (!inside)
    return must_be_there ? Result(TypeError("substring not found")) : Ok(std::int64_t{-1});
  const std::string& text = inside->text;
  if (name == "count") {
    if (part.empty()) return Ok(static_cast<std::int64_t>(Characters(text).size()) + 1);
    std::int64_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos;
         at = text.find(part, at + part.size()))
      ++count;
    return Ok(count);
  }
  const std::size_t at = name[0] == 'r' ? text.rfind(part) : text.find(part);
  if (at == std::string::npos)
    return must_be_there ? Result(TypeError("substring not found")) : Ok(std::int64_t{-1});
  const auto before =
      static_cast<std::int64_t>(Characters(std::string_view(text).substr(0, at)).size());
  return Ok(inside->begin + before);
}

Result JoinMethod(const std::string& separator, const Arguments& arguments, RenderBudget& budget) {
  if (arguments.positional.empty()) return TypeError("join needs a list");
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(arguments.positional[0]));
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string())
      return TypeError(fmt::format(
          "sequence item {}: expected str instance, {} found", i, items[i].type_name()));
    if (i > 0) out += separator;
    out += items[i].as_string();
    HOLMES_RETURN_IF_ERROR(budget.CheckSize(out.size()));
  }
  return Ok(std::move(out));
}

Result Partition(const std::string& text, std::string_view name, const Arguments& arguments) {
  HOLMES_ASSIGN_OR_RETURN(const std::string separator, Text(arguments, 0, "sep", true));
  if (separator.empty()) return TypeError("empty separator");
  const bool right = name[0] == 'r';
  const std::size_t at = right ? text.rfind(separator) : text.find(separator);
  if (at == std::string::npos)
    return Ok(right ? Value::Tuple({"", "", text}) : Value::Tuple({text, "", ""}));
  return Ok(Value::Tuple({text.substr(0, at), separator, text.substr(at + separator.size())}));
}

std::string ExpandTabs(const std::vector<char32_t>& characters, std::int64_t every) {
  std::vector<char32_t> out;
  std::int64_t column = 0;
  for (const char32_t c : characters) {
    if (c == '\t') {
      const std::int64_t blanks = every > 0 ? every - column % every : 0;
      out.insert(out.end(), static_cast<std::size_t>(blanks), U' ');
      column += blanks;
      continue;
    }
    out.push_back(c);
    column = c == '\n' || c == '\r' ? 0 : column + 1;
  }
  return FromCharacters(out);
}

/// zfill, ljust, rjust, center and expandtabs.
Result Widen(const std::string& text,
             std::string_view name,
             const Arguments& arguments,
             RenderBudget& budget) {
  const bool tabs = name == "expandtabs";
  const Value* width = FindArgument(arguments, 0, tabs ? "tabsize" : "width");
  if (width == nullptr ? !tabs : !width->is_number() || width->is_float())
    return TypeError(fmt::format("{} needs an integer", name));
  const std::int64_t wanted = width == nullptr ? 8 : std::max<std::int64_t>(width->as_int(), 0);
  std::string fill = " ";
  if (!tabs && name != "zfill" && arguments.positional.size() > 1) {
    HOLMES_ASSIGN_OR_RETURN(fill, Text(arguments, 1, "fillchar", true));
    if (Characters(fill).size() != 1)
      return TypeError("The fill character must be exactly one character long");
  }
  HOLMES_RETURN_IF_ERROR(budget.CheckSize(static_cast<std::size_t>(wanted)));
  const std::vector<char32_t> characters = Characters(text);
  if (tabs) {
    const auto count = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\t'));
    HOLMES_RETURN_IF_ERROR(
        budget.CheckSize(text.size() + count * static_cast<std::size_t>(wanted)));
    return Ok(ExpandTabs(characters, wanted));
  }
  const auto missing = wanted - static_cast<std::int64_t>(characters.size());
  if (missing <= 0) return Ok(text);
  HOLMES_RETURN_IF_ERROR(
      budget.CheckSize(text.size() + fill.size() * static_cast<std::size_t>(missing)));
  const auto repeated = [](std::string_view part, std::int64_t count) {
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) out += part;
    return out;
  };
  if (name == "zfill") {
    const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    return Ok(text.substr(0, sign) + repeated("0", missing) + text.substr(sign));
  }
  // Python's centring puts the odd blank left when the width is odd.
  const std::int64_t left = name == "ljust"   ? 0
                            : name == "rjust" ? missing
                                              : missing / 2 + (missing & wanted & 1);
  return Ok(repeated(fill, left) + text + repeated(fill, missing - left));
}

Result StringMethod(const std::string& text,
                    std::string_view name,
                    const Arguments& arguments,
                    RenderBudget& budget) {
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    HOLMES_ASSIGN_OR_RETURN(const std::string chars, Text(arguments, 0, "chars", false));
    return Ok(Strip(text, chars, name != "rstrip", name != "lstrip"));
  }
  if (name == "split" || name == "rsplit") {
    HOLMES_ASSIGN_OR_RETURN(const std::string separator, Text(arguments, 0, "sep", false));
    const Value* given = FindArgument(arguments, 0, "sep");
    if (separator.empty() && given != nullptr && given->is_string())
      return TypeError("empty separator");
    return Ok(
        ToList(SplitText(text, separator, Limit(arguments, 1, "maxsplit"), name == "rsplit")));
  }
  if (name == "splitlines")
    return Ok(ToList(
        SplitLines(text, !arguments.positional.empty() && arguments.positional[0].Truthy())));
  if (name == "startswith" || name == "endswith")
    return Affix(text, arguments, name == "startswith");
  if (name == "replace") {
    HOLMES_ASSIGN_OR_RETURN(const std::string from, Text(arguments, 0, "old", true));
    HOLMES_ASSIGN_OR_RETURN(const std::string to, Text(arguments, 1, "new", true));
    HOLMES_RETURN_IF_ERROR(
        budget.CheckSize(to.size() * (from.empty() ? text.size() + 1 : text.size() / from.size())));
    return Ok(ReplaceText(text, from, to, Limit(arguments, 2, "count")));
  }
  if (name == "removeprefix" || name == "removesuffix") {
    HOLMES_ASSIGN_OR_RETURN(const std::string part, Text(arguments, 0, "part", true));
    if (name == "removeprefix") return Ok(text.starts_with(part) ? text.substr(part.size()) : text);
    return Ok(!part.empty() && text.ends_with(part) ? text.substr(0, text.size() - part.size())
                                                    : text);
  }
  if (name == "find" || name == "rfind" || name == "index" || name == "rindex" || name == "count")
    return Search(text, name, arguments);
  if (name == "join") return JoinMethod(text, arguments, budget);
  if (name == "format") {
    HOLMES_ASSIGN_OR_RETURN(std::string out, FormatBraces(text, arguments, budget));
    return Ok(std::move(out));
  }
  if (name == "partition" || name == "rpartition") return Partition(text, name, arguments);
  if (name == "zfill" || name == "ljust" || name == "rjust" || name == "center" ||
      name == "expandtabs")
    return Widen(text, name, arguments, budget);
  return CaseOrKind(text, name);
}

Result DictMethod(const Value& object, std::string_view name, const Arguments& arguments) {
  List out;
  if (name == "items") {
    for (const auto& [key, value] : object.as_dict())
      out.push_back(Value::Tuple({DictKeyValue(key), value}));
    return Ok(std::move(out));
  }
  if (name == "keys") {
    for (const auto& [key, value] : object.as_dict()) out.push_back(DictKeyValue(key));
    return Ok(std::move(out));
  }
  if (name == "values") {
    for (const auto& [key, value] : object.as_dict()) out.push_back(value);
    return Ok(std::move(out));
  }
  if (name == "get") {
    if (arguments.positional.empty()) return TypeError("get needs a key");
    const Value& key = arguments.positional[0];
    const std::optional<std::string> name_of_key = DictKey(key);
    const Value* found = name_of_key ? object.Find(*name_of_key) : nullptr;
    if (found != nullptr) return Ok(*found);
    return Ok(arguments.positional.size() > 1 ? arguments.positional[1] : Value());
  }
  if (name == "copy") return Ok(Dict(object.as_dict()));
  return std::optional<Value>();
}

Result ListMethod(const Value& object, std::string_view name, const Arguments& arguments) {
  if (name == "copy") return Ok(object);
  if (name != "index" && name != "count") return std::optional<Value>();
  if (arguments.positional.empty()) return TypeError(fmt::format("{} needs a value", name));
  const List& list = object.as_list();
  if (name == "count")
    return Ok(
        static_cast<std::int64_t>(std::count(list.begin(), list.end(), arguments.positional[0])));
  const auto found = std::find(list.begin(), list.end(), arguments.positional[0]);
  if (found == list.end()) return TypeError("the value is not in the list");
  return Ok(static_cast<std::int64_t>(found - list.begin()));
}

}  // namespace

StatusOr<std::optional<Value>> CallMethod(const Value& object,
                                          std::string_view name,
                                          const Arguments& arguments,
                                          RenderBudget& budget) {
  if (object.is_string()) return StringMethod(object.as_string(), name, arguments, budget);
  if (object.is_dict()) return DictMethod(object, name, arguments);
  if (object.is_list()) return ListMethod(object, name, arguments);
  return std::optional<Value>();
}

}  // namespace holmes::text
