#include "text/template_filters.h"

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
  if (input.is_undefined())
    return TypeError(fmt::format("'{}' is undefined", input.undefined_name()));
  const Value* given = FindArgument(arguments, 0, "default");
  const Value fallback = given != nullptr ? *given : Value(0);
  if (input.is_float() && !std::isfinite(input.as_double())) return fallback;
  if (input.is_number()) return Value(input.as_int());
  if (!input.is_string()) return fallback;
  const std::string text = Strip(input.as_string(), "", true, true);
  std::int64_t value = 0;
  const std::int64_t base = IntegerArgument(arguments, 1, "base", 10);
  const bool prefixed = (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) ||
                        (base == 8 && (text.starts_with("0o") || text.starts_with("0O"))) ||
                        (base == 2 && (text.starts_with("0b") || text.starts_with("0B")));
  const char* first = text.data() + (prefixed ? 2 : text.starts_with('+') ? 1 : 0);
  const auto [end, error] =
      std::from_chars(first,
                      text.data() + text.size(),
                      value,
                      static_cast<int>(std::clamp<std::int64_t>(base, 2, 36)));
  if (error == std::errc() && end == text.data() + text.size()) return Value(value);
  double number = 0;
  const auto parsed = std::from_chars(first, text.data() + text.size(), number);
  const bool fits = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() &&
                    std::fabs(number) < 9e18;
  return fits ? Value(static_cast<std::int64_t>(number)) : fallback;
}

Result ToFloat(const Value& input, const Arguments& arguments, RenderBudget&) {
  if (input.is_undefined())
    return TypeError(fmt::format("'{}' is undefined", input.undefined_name()));
  if (input.is_number()) return Value(input.as_double());
  const std::string text = input.is_string() ? Strip(input.as_string(), "", true, true) : "";
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size())
    return Value(number);
  const Value* fallback = FindArgument(arguments, 0, "default");
  return fallback != nullptr ? *fallback : Value(0.0);
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
  options.sort_keys = FlagArgument(arguments, 3, "sort_keys");
  if (const Value* separators = FindArgument(arguments, 2, "separators");
      separators != nullptr && separators->is_list() && separators->as_list().size() == 2) {
    options.item_separator = separators->as_list()[0].ToString();
    options.key_separator = separators->as_list()[1].ToString();
    if (options.item_separator->size() + options.key_separator.size() > std::size_t{kMaxJsonIndent})
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
  const bool sensitive = FlagArgument(arguments, 0, "case_sensitive");
  List out;
  List seen;
  for (const Value& item : items) {
    Value key = attribute == nullptr ? item : Attribute(item, *attribute);
    if (!sensitive) key = LowerIfText(key);
    HOLMES_RETURN_IF_ERROR(budget.Spend(static_cast<std::int64_t>(seen.size() / 16)));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
    seen.push_back(std::move(key));
    out.push_back(item);
  }
  return Value(std::move(out));
}

Result Extreme(const Value& input, const Arguments& arguments, bool largest) {
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  if (items.empty()) return Value(Undefined{"No aggregated item, sequence was empty."});
  const bool sensitive = FlagArgument(arguments, 0, "case_sensitive");
  const Value* attribute = FindArgument(arguments, 1, "attribute");
  const auto key = [&](const Value& item) {
    Value value = attribute == nullptr ? item : Attribute(item, *attribute);
    return sensitive ? value : LowerIfText(value);
  };
  const Value* best = &items[0];
  for (const Value& item : items) {
    HOLMES_ASSIGN_OR_RETURN(const bool better,
                            ApplyCompare(largest ? ">" : "<", key(item), key(*best)));
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
  const std::int64_t precision =
      std::clamp<std::int64_t>(IntegerArgument(arguments, 0, "precision", 0), -400, 400);
  const std::string method = TextArgument(arguments, 1, "method", "common");
  if (method != "common" && method != "ceil" && method != "floor")
    return TypeError("method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double x = input.as_double();
  if (method == "ceil") return Value(std::ceil(x * scale) / scale);
  if (method == "floor") return Value(std::floor(x * scale) / scale);
  if (!input.is_float() && precision >= 0) return Value(input.as_int());
  // Half to even, of the number's exact digits: 2.675 lies below its last 5.
  if (!input.is_float()) {
    if (precision < -18) return Value(0);
    return Value(static_cast<std::int64_t>(std::nearbyint(x * scale) / scale));
  }
  if (!std::isfinite(x) || precision > 330) return input;
  if (precision < 0) return Value(std::nearbyint(x * scale) / scale);
  const std::string digits = fmt::format("{:.{}f}", x, static_cast<int>(precision));
  double out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return Value(out);
}

Result Reverse(const Value& input, const Arguments&, RenderBudget&) {
  if (input.is_string()) return GetSlice(input, Value(), Value(), Value(-1));
  HOLMES_ASSIGN_OR_RETURN(List items, Iterate(input));
  std::reverse(items.begin(), items.end());
  return Value(std::move(items));
}

Result FirstOrLast(const Value& input, bool first) {
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  if (items.empty()) return Value(Undefined{"No first item, sequence was empty."});
  return first ? items.front() : items.back();
}

/// batch(n) gives lists of n; slice(n) gives n lists. A fill evens the last ones out.
Result Batch(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  const std::int64_t count = IntegerArgument(arguments, 0, "linecount", 0);
  if (count < 1) return TypeError("batch needs a positive number");
  const Value* fill = FindArgument(arguments, 1, "fill_with");
  List out;
  List line;
  for (const Value& item : items) {
    if (static_cast<std::int64_t>(line.size()) == count) out.emplace_back(std::exchange(line, {}));
    line.push_back(item);
  }
  if (!line.empty() && fill != nullptr && !fill->is_none()) {
    HOLMES_RETURN_IF_ERROR(budget.Spend(count));
    line.resize(static_cast<std::size_t>(count), *fill);
  }
  if (!line.empty()) out.emplace_back(std::move(line));
  return Value(std::move(out));
}

Result SliceFilter(const Value& input, const Arguments& arguments, RenderBudget& budget) {
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(input));
  const std::int64_t slices = IntegerArgument(arguments, 0, "slices", 0);
  if (slices < 1) return TypeError("slice needs a positive number");
  HOLMES_RETURN_IF_ERROR(budget.Spend(slices));
  const Value* fill = FindArgument(arguments, 1, "fill_with");
  const auto size = static_cast<std::int64_t>(items.size());
  List out;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    const std::int64_t length = size / slices + (i < size % slices ? 1 : 0);
    List part(items.begin() + at, items.begin() + at + length);
    if (fill != nullptr && !fill->is_none() && i >= size % slices) part.push_back(*fill);
    at += length;
    out.emplace_back(std::move(part));
  }
  return Value(std::move(out));
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
      {"batch", Batch},
      {"capitalize",
       [](const Value& v, const Arguments&, RenderBudget&) -> Result {
         return Value(Capitalize(v.ToString()));
       }},
      {"center", Center},
      {"count", LengthFilter},
      {"d", Default},
      {"default", Default},
      {"dictsort", DictSort},
      {"e", Escape},
      {"escape", Escape},
      {"first",
       [](const Value& v, const Arguments&, RenderBudget&) { return FirstOrLast(v, true); }},
      {"float", ToFloat},
      {"forceescape", Escape},
      {"format", FormatFilter},
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
      {"max",
       [](const Value& v, const Arguments& a, RenderBudget&) { return Extreme(v, a, true); }},
      {"min",
       [](const Value& v, const Arguments& a, RenderBudget&) { return Extreme(v, a, false); }},
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
      {"slice", SliceFilter},
      {"sort", Sort},
      {"string",
       [](const Value& v, const Arguments&, RenderBudget&) -> Result {
         return Value(v.ToString());
       }},
      {"sum", Sum},
      {"title",
       [](const Value& v, const Arguments&, RenderBudget&) -> Result {
         return Value(TitleWords(v.ToString()));
       }},
      {"tojson", ToJsonFilter},
      {"trim", Trim},
      {"truncate", Truncate},
      {"unique", Unique},
      {"wordcount", WordCount},
      {"urlencode", UrlEncode},
      {"upper",
       [](const Value& v, const Arguments&, RenderBudget&) -> Result {
         return Value(ToUpper(v.ToString()));
       }},
  };
  return filters;
}

}  // namespace

bool IsKnownFilter(std::string_view name) { return Filters().find(name) != Filters().end(); }

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

}  // namespace holmes::text
