#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>

#include "text/template_builtins.h"
#include "text/template_parser.h"
#include "text/template_strings.h"

namespace holmes::text {
namespace {

using Result = StatusOr<Value>;
using Filter = Result (*)(const Value& input, const Arguments& arguments, RenderBudget& budget);

Status TypeError(std::string message) { return base::InvalidArgumentError(std::move(message)); }

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

/// "a.b.0" through dicts and lists; undefined where it ends.
Value Attribute(Value value, const Value& path) {
  if (path.is_int()) return GetItem(value, path).value_or(Value(Undefined{path.ToString()}));
  for (const std::string& part : SplitText(path.ToString(), ".", -1, false)) {
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = !part.empty() && error == std::errc() && end == part.data() + part.size();
    if (value.is_undefined()) return value;
    value = GetItem(value, number && value.is_list() ? Value(index) : Value(part))
                .value_or(Value(Undefined{part}));
  }
  return value;
}

Result Default(const Value& input, const Arguments& arguments, RenderBudget&) {
  const bool replace =
      input.is_undefined() || (FlagArgument(arguments, 1, "boolean") && !input.Truthy());
  if (!replace) return input;
  const Value* fallback = FindArgument(arguments, 0, "default_value");
  return fallback != nullptr ? *fallback : Value("");
}

Result ToInt(const Value& input, const Arguments& arguments, RenderBudget&) {
  const std::int64_t fallback = IntegerArgument(arguments, 0, "default", 0);
  if (input.is_float() && !std::isfinite(input.as_double())) return Value(fallback);
  if (input.is_number()) return Value(input.as_int());
  if (!input.is_string()) return Value(fallback);
  const std::string text = Strip(input.as_string(), "", true, true);
  std::int64_t value = 0;
  const char* first = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(
      first,
      text.data() + text.size(),
      value,
      static_cast<int>(std::clamp<std::int64_t>(IntegerArgument(arguments, 1, "base", 10), 2, 36)));
  if (error == std::errc() && end == text.data() + text.size()) return Value(value);
  double number = 0;
  const auto parsed = std::from_chars(first, text.data() + text.size(), number);
  const bool fits = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() &&
                    std::fabs(number) < 9e18;
  return Value(fits ? static_cast<std::int64_t>(number) : fallback);
}

Result ToFloat(const Value& input, const Arguments&, RenderBudget&) {
  if (input.is_number()) return Value(input.as_double());
  const std::string text = input.is_string() ? Strip(input.as_string(), "", true, true) : "";
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return Value(!text.empty() && error == std::errc() && end == text.data() + text.size() ? number
                                                                                         : 0.0);
}

Result Join(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  const std::string separator = TextArgument(arguments, 0, "d", "");
  const Value* attribute = FindArgument(arguments, 1, "attribute");
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += separator;
    out += (attribute == nullptr ? items[i] : Attribute(items[i], *attribute)).ToString();
    HOLMES_RETURN_IF_ERROR(budget.CheckSize(out.size()));
  }
  return Value(std::move(out));
}

constexpr std::int64_t kMaxJsonIndent = 64;

Result ToJsonFilter(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  // tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)
  JsonOptions options;
  options.ensure_ascii = FlagArgument(arguments, 0, "ensure_ascii");
  const Value* indent = FindArgument(arguments, 1, "indent");
  if (indent != nullptr && indent->is_string()) {
    options.indent = 0;
    options.indent_text = indent->as_string();
    if (options.indent_text.size() > std::size_t{kMaxJsonIndent})
      return base::ResourceExhaustedError("tojson: the indent is too long");
  } else if (indent != nullptr && indent->is_number()) {
    if (indent->as_int() > kMaxJsonIndent)
      return base::ResourceExhaustedError(
          fmt::format("tojson: an indent of more than {} is not supported", kMaxJsonIndent));
    options.indent = static_cast<int>(std::max<std::int64_t>(indent->as_int(), 0));
  }
  if (const Value* separators = FindArgument(arguments, 2, "separators");
      separators != nullptr && separators->is_list() && separators->as_list().size() == 2) {
    options.item_separator = separators->as_list()[0].ToString();
    options.key_separator = separators->as_list()[1].ToString();
    if (options.item_separator.size() + options.key_separator.size() > std::size_t{kMaxJsonIndent})
      return base::ResourceExhaustedError("tojson: the separators are too long");
  }
  HOLMES_ASSIGN_OR_RETURN(std::string out, ToJson(input, options));
  HOLMES_RETURN_IF_ERROR(budget.CheckSize(out.size()));
  return Value(std::move(out));
}

Result Items(const Value& input, const Arguments&, RenderBudget& budget) {
  if (input.is_undefined()) return Value(List());
  if (!input.is_dict()) return TypeError("Can only get item pairs from a mapping.");
  HOLMES_ASSIGN_OR_RETURN(std::optional<Value> out, CallMethod(input, "items", {}, budget));
  return *std::move(out);
}

Value LowerIfText(const Value& value) {
  return value.is_string() ? Value(ToLower(value.as_string())) : value;
}

Result Sorted(List items, bool reverse, const std::function<Value(const Value&)>& key) {
  bool comparable = true;
  std::stable_sort(items.begin(), items.end(), [&](const Value& a, const Value& b) {
    const StatusOr<bool> less =
        ApplyCompare("<", reverse ? key(b) : key(a), reverse ? key(a) : key(b));
    comparable = comparable && less.ok();
    return less.ok() && *less;
  });
  if (!comparable) return TypeError("the items to sort cannot be compared with each other");
  return Value(std::move(items));
}

Result Sort(const Value& input, const Arguments& arguments, RenderBudget&) {
  HOLMES_ASSIGN_OR_RETURN(List items, Iterate(input));
  const bool sensitive = FlagArgument(arguments, 1, "case_sensitive");
  const Value* attribute = FindArgument(arguments, 2, "attribute");
  return Sorted(std::move(items), FlagArgument(arguments, 0, "reverse"), [=](const Value& item) {
    Value key = attribute == nullptr ? item : Attribute(item, *attribute);
    return sensitive ? key : LowerIfText(key);
  });
}

Result DictSort(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  HOLMES_ASSIGN_OR_RETURN(const Value pairs, Items(input, {}, budget));
  const bool sensitive = FlagArgument(arguments, 0, "case_sensitive");
  const std::size_t by = TextArgument(arguments, 1, "by", "key") == "value" ? 1 : 0;
  return Sorted(pairs.as_list(), FlagArgument(arguments, 2, "reverse"), [=](const Value& pair) {
    const Value& key = pair.as_list()[by];
    return sensitive ? key : LowerIfText(key);
  });
}

/// map('filter', args ...) or map(attribute='name', default=...).
Result Map(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  if (!input.Truthy()) return Value(List());  // as jinja2: none too
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  List out;
  if (arguments.positional.empty()) {
    const Value* attribute = FindArgument(arguments, 0, "attribute");
    if (attribute == nullptr) return TypeError("map requires a filter argument");
    const Value* fallback = FindArgument(arguments, 1, "default");
    for (const Value& item : items) {
      Value value = Attribute(item, *attribute);
      if (value.is_undefined() && fallback != nullptr) value = *fallback;
      out.push_back(std::move(value));
    }
    return Value(std::move(out));
  }
  const std::string name = arguments.positional[0].ToString();
  if (!IsKnownFilter(name)) return TypeError(fmt::format("No filter named '{}'.", name));
  const Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()},
                       arguments.named};
  for (const Value& item : items) {
    HOLMES_RETURN_IF_ERROR(budget.Step());
    HOLMES_ASSIGN_OR_RETURN(Value value, ApplyFilter(name, item, rest, budget));
    out.push_back(std::move(value));
  }
  return Value(std::move(out));
}

/// select, reject, selectattr, rejectattr.
Result Choose(const Value& input,
              const Arguments& arguments,
              RenderBudget& budget,
              bool by_attribute,
              bool keep) {
  if (!input.Truthy()) return Value(List());  // as jinja2: none too
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  std::size_t at = by_attribute ? 1 : 0;
  if (arguments.positional.size() < at) return TypeError("Missing parameter for attribute name");
  const bool has_test = arguments.positional.size() > at;
  const std::string test = has_test ? arguments.positional[at].ToString() : "";
  if (has_test && !IsKnownTest(test)) return TypeError(fmt::format("No test named '{}'.", test));
  const Arguments rest =
      has_test ? Arguments{{arguments.positional.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                            arguments.positional.end()},
                           {}}
               : Arguments{};
  List out;
  for (const Value& item : items) {
    HOLMES_RETURN_IF_ERROR(budget.Step());
    const Value value = by_attribute ? Attribute(item, arguments.positional[0]) : item;
    bool holds = value.Truthy();
    if (has_test) {
      HOLMES_ASSIGN_OR_RETURN(holds, ApplyTest(test, value, rest));
    }
    if (holds == keep) out.push_back(item);
  }
  return Value(std::move(out));
}

Result Unique(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  const Value* attribute = FindArgument(arguments, 1, "attribute");
  List out;
  List seen;
  for (const Value& item : items) {
    Value key = LowerIfText(attribute == nullptr ? item : Attribute(item, *attribute));
    HOLMES_RETURN_IF_ERROR(budget.Spend(static_cast<std::int64_t>(seen.size() / 16)));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
    seen.push_back(std::move(key));
    out.push_back(item);
  }
  return Value(std::move(out));
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

Result Extreme(const Value& input, bool largest) {
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  if (items.empty()) return Value(Undefined{"No aggregated item, sequence was empty."});
  const Value* best = &items[0];
  for (const Value& item : items) {
    HOLMES_ASSIGN_OR_RETURN(
        const bool better,
        ApplyCompare(largest ? ">" : "<", LowerIfText(item), LowerIfText(*best)));
    if (better) best = &item;
  }
  return *best;
}

Result Sum(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  const Value* attribute = FindArgument(arguments, 0, "attribute");
  Value out(IntegerArgument(arguments, 1, "start", 0));
  for (const Value& item : items) {
    HOLMES_RETURN_IF_ERROR(budget.SpendOn(out));
    HOLMES_ASSIGN_OR_RETURN(
        out,
        ApplyBinary("+", out, attribute == nullptr ? item : Attribute(item, *attribute), budget));
  }
  return out;
}

Result Round(const Value& input, const Arguments& arguments, RenderBudget&) {
  if (!input.is_number())
    return TypeError(fmt::format("type {} doesn't define __round__ method", input.type_name()));
  const double scale =
      std::pow(10.0, static_cast<double>(IntegerArgument(arguments, 0, "precision", 0)));
  const std::string method = TextArgument(arguments, 1, "method", "common");
  const double x = input.as_double() * scale;
  return Value((method == "ceil"    ? std::ceil(x)
                : method == "floor" ? std::floor(x)
                                    : std::nearbyint(x)) /
               scale);
}

Result Reverse(const Value& input, const Arguments&, RenderBudget&) {
  if (input.is_string()) return GetSlice(input, Value(), Value(), Value(-1));
  HOLMES_ASSIGN_OR_RETURN(List items, Iterate(input));
  std::reverse(items.begin(), items.end());
  return Value(std::move(items));
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

Result FirstOrLast(const Value& input, bool first) {
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  if (items.empty()) return Value(Undefined{"No first item, sequence was empty."});
  return first ? items.front() : items.back();
}

Result LengthFilter(const Value& input, const Arguments&, RenderBudget&) {
  HOLMES_ASSIGN_OR_RETURN(const std::int64_t length, Length(input));
  return Value(length);
}

Result ListFilter(const Value& input, const Arguments&, RenderBudget&) {
  HOLMES_ASSIGN_OR_RETURN(List items, Iterate(input));
  return Value(std::move(items));
}

Result Abs(const Value& input, const Arguments&, RenderBudget&) {
  if (!input.is_number())
    return TypeError(fmt::format("bad operand type for abs(): '{}'", input.type_name()));
  return input.is_float() ? Value(std::fabs(input.as_double()))
                          : Value(input.as_int() < 0 ? -input.as_int() : input.as_int());
}

const std::map<std::string, Filter, std::less<>>& Filters() {
  static const std::map<std::string, Filter, std::less<>> filters = {
      {"abs", Abs},
      {"capitalize",
       [](const Value& v, const Arguments&, RenderBudget&) -> Result {
         return Value(Capitalize(v.ToString()));
       }},
      {"count", LengthFilter},
      {"d", Default},
      {"default", Default},
      {"dictsort", DictSort},
      {"e", Escape},
      {"escape", Escape},
      {"first",
       [](const Value& v, const Arguments&, RenderBudget&) { return FirstOrLast(v, true); }},
      {"float", ToFloat},
      {"indent", Indent},
      {"int", ToInt},
      {"items", Items},
      {"join", Join},
      {"last",
       [](const Value& v, const Arguments&, RenderBudget&) { return FirstOrLast(v, false); }},
      {"length", LengthFilter},
      {"list", ListFilter},
      {"lower",
       [](const Value& v, const Arguments&, RenderBudget&) -> Result {
         return Value(ToLower(v.ToString()));
       }},
      {"map", Map},
      {"max", [](const Value& v, const Arguments&, RenderBudget&) { return Extreme(v, true); }},
      {"min", [](const Value& v, const Arguments&, RenderBudget&) { return Extreme(v, false); }},
      {"reject",
       [](const Value& v, const Arguments& a, RenderBudget& b) {
         return Choose(v, a, b, false, false);
       }},
      {"rejectattr",
       [](const Value& v, const Arguments& a, RenderBudget& b) {
         return Choose(v, a, b, true, false);
       }},
      {"replace", Replace},
      {"reverse", Reverse},
      {"round", Round},
      {"safe",
       [](const Value& v, const Arguments&, RenderBudget&) -> Result {
         return Value(v.ToString());
       }},
      {"select",
       [](const Value& v, const Arguments& a, RenderBudget& b) {
         return Choose(v, a, b, false, true);
       }},
      {"selectattr",
       [](const Value& v, const Arguments& a, RenderBudget& b) {
         return Choose(v, a, b, true, true);
       }},
      {"sort", Sort},
      {"string",
       [](const Value& v, const Arguments&, RenderBudget&) -> Result {
         return Value(v.ToString());
       }},
      {"sum", Sum},
      {"title",
       [](const Value& v, const Arguments&, RenderBudget&) -> Result {
         return Value(ToTitle(v.ToString()));
       }},
      {"tojson", ToJsonFilter},
      {"trim", Trim},
      {"unique", Unique},
      {"upper",
       [](const Value& v, const Arguments&, RenderBudget&) -> Result {
         return Value(ToUpper(v.ToString()));
       }},
  };
  return filters;
}

using Test = bool (*)(const Value& input);

const std::map<std::string, Test, std::less<>>& PlainTests() {
  static const std::map<std::string, Test, std::less<>> tests = {
      {"boolean", [](const Value& v) { return v.is_bool(); }},
      {"callable", [](const Value& v) { return v.is_function(); }},
      {"defined", [](const Value& v) { return !v.is_undefined(); }},
      {"even", [](const Value& v) { return v.is_number() && v.as_int() % 2 == 0; }},
      {"false", [](const Value& v) { return v.is_bool() && !v.as_bool(); }},
      {"float", [](const Value& v) { return v.is_float(); }},
      {"integer", [](const Value& v) { return v.is_int(); }},
      {"iterable",
       [](const Value& v) {
         return v.is_list() || v.is_dict() || v.is_string() || v.is_undefined();
       }},
      {"lower",
       [](const Value& v) {
         return v.is_string() && v.as_string() == ToLower(v.as_string()) &&
                v.as_string() != ToUpper(v.as_string());
       }},
      {"mapping", [](const Value& v) { return v.is_dict(); }},
      {"none", [](const Value& v) { return v.is_none(); }},
      {"number", [](const Value& v) { return v.is_number(); }},
      {"odd", [](const Value& v) { return v.is_number() && v.as_int() % 2 != 0; }},
      {"sequence",
       [](const Value& v) {
         return v.is_list() || v.is_dict() || v.is_string() || v.is_undefined();
       }},
      {"string", [](const Value& v) { return v.is_string(); }},
      {"true", [](const Value& v) { return v.is_bool() && v.as_bool(); }},
      {"undefined", [](const Value& v) { return v.is_undefined(); }},
      {"upper",
       [](const Value& v) {
         return v.is_string() && v.as_string() == ToUpper(v.as_string()) &&
                v.as_string() != ToLower(v.as_string());
       }},
  };
  return tests;
}

/// Tests that compare with an argument, by operator.
const std::map<std::string, std::string, std::less<>>& ComparingTests() {
  static const std::map<std::string, std::string, std::less<>> tests = {{"eq", "=="},
                                                                        {"equalto", "=="},
                                                                        {"==", "=="},
                                                                        {"sameas", "=="},
                                                                        {"ne", "!="},
                                                                        {"!=", "!="},
                                                                        {"lt", "<"},
                                                                        {"lessthan", "<"},
                                                                        {"<", "<"},
                                                                        {"le", "<="},
                                                                        {"<=", "<="},
                                                                        {"gt", ">"},
                                                                        {"greaterthan", ">"},
                                                                        {">", ">"},
                                                                        {"ge", ">="},
                                                                        {">=", ">="},
                                                                        {"in", "in"},
                                                                        {"divisibleby", "%"}};
  return tests;
}

}  // namespace

bool IsKnownFilter(std::string_view name) { return Filters().find(name) != Filters().end(); }
bool IsKnownTest(std::string_view name) {
  return PlainTests().find(name) != PlainTests().end() ||
         ComparingTests().find(name) != ComparingTests().end();
}

StatusOr<Value> ApplyFilter(std::string_view name,
                            const Value& input,
                            const Arguments& arguments,
                            RenderBudget& budget) {
  const auto filter = Filters().find(name);
  // Named only when it is reached, as in jinja2: templates guard filters of their own set-ups by
  // conditions.
  if (filter == Filters().end())
    return base::UnimplementedError(fmt::format("the filter '{}' is not supported", name));
  const bool whole = name == "tojson" || name == "string" || name == "join" || name == "unique" ||
                     name == "sort" || name == "dictsort";
  HOLMES_RETURN_IF_ERROR(whole ? budget.SpendDeeply(input) : budget.SpendOn(input));
  HOLMES_ASSIGN_OR_RETURN(Value out, filter->second(input, arguments, budget));
  HOLMES_RETURN_IF_ERROR(budget.SpendOn(out));
  return out;
}

StatusOr<bool> ApplyTest(std::string_view name, const Value& input, const Arguments& arguments) {
  if (const auto plain = PlainTests().find(name); plain != PlainTests().end())
    return plain->second(input);
  if (arguments.positional.empty())
    return TypeError(fmt::format("the test '{}' needs an argument", name));
  const std::string& op = ComparingTests().find(name)->second;
  const Value& other = arguments.positional[0];
  if (op != "%") return ApplyCompare(op, input, other);
  if (!input.is_int() || !other.is_int() || other.as_int() == 0)
    return TypeError("divisibleby needs integers other than zero");
  return input.as_int() % other.as_int() == 0;
}

}  // namespace holmes::text
