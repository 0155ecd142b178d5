#include "text/template_format.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "text/template_strings.h"

namespace holmes::text {
namespace {

constexpr std::int64_t kMaxPrecision = 1000;

struct Spec {
  std::string fill = " ";
  char align = 0;     // < > ^ =
  char sign = '-';    // what stands before a number that is not negative: + or blank, - for nothing
  char grouping = 0;  // , or _
  bool alternate = false;
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = 0;
};

Status Refuse(std::string message) { return base::InvalidArgumentError(std::move(message)); }

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// The digits at the beginning, which go away; empty when there are none.
StatusOr<std::optional<std::int64_t>> TakeNumber(std::string_view& text) {
  std::optional<std::int64_t> out;
  while (!text.empty() && IsDigit(text[0])) {
    out = out.value_or(0) * 10 + (text[0] - '0');
    if (*out > INT32_MAX) return base::ResourceExhaustedError("a format's number is too large");
    text.remove_prefix(1);
  }
  return out;
}

StatusOr<std::string> Pad(std::string_view sign,
                          std::string body,
                          const Spec& spec,
                          char usual_align,
                          RenderBudget& budget) {
  const auto length = static_cast<std::int64_t>(Characters(body).size() + sign.size());
  const std::int64_t missing = std::max<std::int64_t>(0, spec.width - length);
  HOLMES_RETURN_IF_ERROR(
      budget.CheckSize(body.size() + spec.fill.size() * static_cast<std::size_t>(missing)));
  const char align = spec.align != 0 ? spec.align : usual_align;
  const std::int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const auto repeated = [&](std::int64_t count) {
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) out += spec.fill;
    return out;
  };
  if (align == '=') return std::string(sign) + repeated(missing) + body;
  return repeated(left) + std::string(sign) + body + repeated(missing - left);
}

void Group(std::string& digits, char separator, std::size_t every) {
  std::size_t end = 0;
  while (end < digits.size() && IsDigit(digits[end])) ++end;
  for (std::size_t at = end; at > every; at -= every) digits.insert(at - every, 1, separator);
}

std::string_view SignOf(bool negative, const Spec& spec) {
  return negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
}

StatusOr<std::string> FormatInteger(std::int64_t value, const Spec& spec, RenderBudget& budget) {
  if (spec.precision >= 0) return Refuse("Precision not allowed in integer format specifier");
  const std::uint64_t size =
      value < 0 ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string sign(SignOf(value < 0, spec));
  std::string body;
  switch (spec.type) {
    case 'x':
      body = fmt::format("{:x}", size);
      break;
    case 'X':
      body = fmt::format("{:X}", size);
      break;
    case 'o':
      body = fmt::format("{:o}", size);
      break;
    case 'b':
      body = fmt::format("{:b}", size);
      break;
    default:
      body = fmt::format("{}", size);
      if (spec.grouping != 0) Group(body, spec.grouping, 3);
      return Pad(sign, std::move(body), spec, '>', budget);
  }
  if (spec.grouping != 0)
    return base::UnimplementedError("grouping of digits that are not decimal is not supported");
  if (spec.alternate) sign += std::string("0") + spec.type;
  return Pad(sign, std::move(body), spec, '>', budget);
}

StatusOr<std::string> FormatFloat(double value, const Spec& spec, RenderBudget& budget) {
  if (spec.precision > kMaxPrecision)
    return base::ResourceExhaustedError(
        fmt::format("a format's precision is more than {}", kMaxPrecision));
  const double size = std::fabs(value);
  const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  std::string body;
  switch (spec.type) {
    case 'f':
    case 'F':
      body = fmt::format("{:.{}f}", size, precision);
      break;
    case 'e':
      body = fmt::format("{:.{}e}", size, precision);
      break;
    case 'E':
      body = fmt::format("{:.{}E}", size, precision);
      break;
    case 'g':
      body = fmt::format("{:.{}g}", size, precision);
      break;
    case 'G':
      body = fmt::format("{:.{}G}", size, precision);
      break;
    case '%':
      body = fmt::format("{:.{}f}%", size * 100, precision);
      break;
    default:
      if (spec.precision >= 0)
        return base::UnimplementedError("a float's precision needs a type, such as .2f");
      body = FloatRepr(size);
  }
  if (spec.alternate)
    return base::UnimplementedError("'#' in the format of a float is not supported");
  if (spec.grouping != 0) Group(body, spec.grouping, 3);
  return Pad(SignOf(std::signbit(value), spec), std::move(body), spec, '>', budget);
}

StatusOr<std::string> FormatText(std::string text,
                                 const Spec& spec,
                                 char usual_align,
                                 RenderBudget& budget) {
  if (spec.precision >= 0) {
    std::vector<char32_t> characters = Characters(text);
    if (static_cast<std::int64_t>(characters.size()) > spec.precision) {
      characters.resize(static_cast<std::size_t>(spec.precision));
      text = FromCharacters(characters);
    }
  }
  return Pad("", std::move(text), spec, usual_align, budget);
}

bool Has(std::string_view set, char c) { return c != 0 && set.find(c) != std::string_view::npos; }

/// Python's format(value, spec) after the spec is read.
StatusOr<std::string> FormatValue(const Value& value, const Spec& spec, RenderBudget& budget) {
  if (value.is_string()) {
    if (spec.type != 0 && spec.type != 's')
      return Refuse(fmt::format("Unknown format code '{}' for object of type 'str'", spec.type));
    if (spec.align == '=' || spec.sign != '-' || spec.grouping != 0 || spec.alternate)
      return Refuse("the format is one of numbers, the value is a str");
    return FormatText(value.as_string(), spec, '<', budget);
  }
  if (Has("eEfFgG%", spec.type) && value.is_number())
    return FormatFloat(value.as_double(), spec, budget);
  if (value.is_float() && spec.type == 0) return FormatFloat(value.as_double(), spec, budget);
  if (value.is_number() && !value.is_float() && (spec.type == 0 || Has("dxXob", spec.type)))
    return FormatInteger(value.as_int(), spec, budget);
  return Refuse(fmt::format("the format does not suit a value of type '{}'", value.type_name()));
}

/// [[fill]align][sign][#][0][width][grouping][.precision][type]
StatusOr<Spec> ReadSpec(std::string_view text) {
  Spec out;
  const std::vector<char32_t> characters = Characters(text);
  const auto is_align = [&](std::size_t at) {
    return at < characters.size() && characters[at] < 0x80 &&
           Has("<>^=", static_cast<char>(characters[at]));
  };
  if (is_align(1)) {
    out.fill = FromCharacters({characters[0]});
    out.align = static_cast<char>(characters[1]);
    text.remove_prefix(out.fill.size() + 1);
  } else if (is_align(0)) {
    out.align = text[0];
    text.remove_prefix(1);
  }
  const auto take = [&](std::string_view set) -> char {
    if (text.empty() || !Has(set, text[0])) return 0;
    const char c = text[0];
    text.remove_prefix(1);
    return c;
  };
  if (const char sign = take("+- ")) out.sign = sign;
  out.alternate = take("#") != 0;
  if (take("0") != 0 && out.align == 0) {
    out.fill = "0";
    out.align = '=';
  }
  HOLMES_ASSIGN_OR_RETURN(const auto width, TakeNumber(text));
  out.width = width.value_or(0);
  out.grouping = take(",_");
  if (take(".") != 0) {
    HOLMES_ASSIGN_OR_RETURN(const auto precision, TakeNumber(text));
    if (!precision) return Refuse("Format specifier missing precision");
    out.precision = *precision;
  }
  out.type = take("bdeEfFgGosxX%");
  if (!text.empty()) return Refuse(fmt::format("Invalid format specifier '{}'", text));
  if (out.grouping != 0 && out.fill == "0" && out.align == '=')
    return base::UnimplementedError("zeros before grouped digits are not supported");
  return out;
}

/// What stands between % and its end, and the values in their order.
class PercentFormatter {
 public:
  PercentFormatter(std::string_view format, const Value& values, RenderBudget& budget)
      : rest_(format), values_(values), budget_(budget) {}

  StatusOr<std::string> Run() {
    std::string out;
    while (!rest_.empty()) {
      const std::size_t at = std::min(rest_.find('%'), rest_.size());
      out += rest_.substr(0, at);
      rest_.remove_prefix(at);
      if (rest_.empty()) break;
      HOLMES_RETURN_IF_ERROR(budget_.Step());
      HOLMES_ASSIGN_OR_RETURN(const std::string piece, Piece());
      out += piece;
      HOLMES_RETURN_IF_ERROR(budget_.CheckSize(out.size()));
    }
    const std::size_t given = values_.is_tuple() ? values_.as_list().size() : 1;
    const bool any = values_.is_dict() || (values_.is_list() && !values_.is_tuple());
    if (next_ < given && !any)
      return Refuse("not all arguments converted during string formatting");
    return out;
  }

 private:
  StatusOr<Value> NextValue() {
    const std::size_t at = next_++;
    if (!values_.is_tuple() && at == 0) return values_;
    if (values_.is_tuple() && at < values_.as_list().size()) return values_.as_list()[at];
    return Refuse("not enough arguments for format string");
  }

  StatusOr<std::int64_t> Number() {
    if (!rest_.empty() && rest_[0] == '*') {
      rest_.remove_prefix(1);
      HOLMES_ASSIGN_OR_RETURN(const Value value, NextValue());
      if (!value.is_int()) return Refuse("* wants int");
      if (value.as_int() > INT32_MAX || value.as_int() < -INT32_MAX)
        return base::ResourceExhaustedError("a format's number is too large");
      return value.as_int();
    }
    HOLMES_ASSIGN_OR_RETURN(const auto number, TakeNumber(rest_));
    return number.value_or(0);
  }

  StatusOr<std::string> Piece() {
    rest_.remove_prefix(1);
    std::optional<Value> keyed;
    if (!rest_.empty() && rest_[0] == '(') {
      const std::size_t end = rest_.find(')');
      if (end == std::string_view::npos) return Refuse("incomplete format key");
      if (!values_.is_dict()) return Refuse("format requires a mapping");
      const Value* found = values_.Find(rest_.substr(1, end - 1));
      if (found == nullptr) return Refuse(fmt::format("'{}'", rest_.substr(1, end - 1)));
      keyed = *found;
      rest_.remove_prefix(end + 1);
    }
    Spec spec;
    bool zero = false;
    for (; !rest_.empty() && Has("-+ 0#", rest_[0]); rest_.remove_prefix(1)) {
      const char flag = rest_[0];
      if (flag == '-') spec.align = '<';
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
      zero = zero || flag == '0';
      spec.alternate = spec.alternate || flag == '#';
    }
    HOLMES_ASSIGN_OR_RETURN(spec.width, Number());
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (!rest_.empty() && rest_[0] == '.') {
      rest_.remove_prefix(1);
      HOLMES_ASSIGN_OR_RETURN(spec.precision, Number());
      spec.precision = std::max<std::int64_t>(spec.precision, 0);
    }
    while (!rest_.empty() && Has("hlL", rest_[0])) rest_.remove_prefix(1);
    if (rest_.empty()) return Refuse("incomplete format");
    spec.type = rest_[0];
    rest_.remove_prefix(1);
    if (spec.type == '%') return std::string("%");
    Value value;
    if (keyed) {
      value = *std::move(keyed);
      next_ = 1;
    } else {
      HOLMES_ASSIGN_OR_RETURN(value, NextValue());
    }
    if (zero && spec.align == 0 && !Has("src", spec.type)) {
      spec.fill = "0";
      spec.align = '=';
    }
    return Convert(value, spec);
  }

  StatusOr<std::string> Convert(const Value& value, Spec spec) {
    if (Has("sr", spec.type)) {
      HOLMES_RETURN_IF_ERROR(budget_.SpendDeeply(value));
      return FormatText(spec.type == 's' ? value.ToString() : value.Repr(), spec, '>', budget_);
    }
    if (Has("eEfFgG", spec.type)) {
      if (!value.is_number())
        return Refuse(fmt::format("must be real number, not {}", value.type_name()));
      return FormatFloat(value.as_double(), spec, budget_);
    }
    if (!Has("diuxXo", spec.type))
      return Refuse(fmt::format("unsupported format character '{}'", spec.type));
    const bool decimal = Has("diu", spec.type);
    if (!value.is_number() || (value.is_float() && !decimal))
      return Refuse(fmt::format(
          "%{} format: a real number is required, not {}", spec.type, value.type_name()));
    if (value.is_float() && !(std::fabs(value.as_double()) < 9e18))
      return Refuse("cannot convert that float to an integer");
    if (spec.precision >= 0)
      return base::UnimplementedError("a precision of integers is not supported");
    if (decimal) spec.type = 'd';
    return FormatInteger(value.as_int(), spec, budget_);
  }

  std::string_view rest_;
  const Value& values_;
  RenderBudget& budget_;
  std::size_t next_ = 0;
};

/// {field!conversion:spec}; specs may hold fields themselves, one level deep.
class BraceFormatter {
 public:
  BraceFormatter(const Arguments& arguments, RenderBudget& budget)
      : arguments_(arguments), budget_(budget) {}

  StatusOr<std::string> Run(std::string_view text, int depth) {
    if (depth > 1) return Refuse("Max string recursion exceeded");
    std::string out;
    while (!text.empty()) {
      const std::size_t at = std::min(text.find_first_of("{}"), text.size());
      out += text.substr(0, at);
      text.remove_prefix(at);
      if (text.empty()) break;
      if (text.size() > 1 && text[1] == text[0]) {
        out += text[0];
        text.remove_prefix(2);
        continue;
      }
      if (text[0] == '}') return Refuse("Single '}' encountered in format string");
      HOLMES_RETURN_IF_ERROR(budget_.Step());
      std::size_t end = 1;
      for (int open = 1; end < text.size(); ++end) {
        open += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
        if (open == 0) break;
      }
      if (end >= text.size()) return Refuse("expected '}' before end of string");
      HOLMES_ASSIGN_OR_RETURN(const std::string piece, Field(text.substr(1, end - 1), depth));
      out += piece;
      HOLMES_RETURN_IF_ERROR(budget_.CheckSize(out.size()));
      text.remove_prefix(end + 1);
    }
    return out;
  }

 private:
  StatusOr<std::string> Field(std::string_view field, int depth) {
    const std::size_t colon = std::min(field.find(':'), field.size());
    std::string_view name = field.substr(0, colon);
    char conversion = 0;
    if (const std::size_t mark = name.find('!'); mark != std::string_view::npos) {
      if (name.size() != mark + 2 || !Has("rs", name[mark + 1]))
        return Refuse("the conversion after '!' must be s or r");
      conversion = name[mark + 1];
      name = name.substr(0, mark);
    }
    HOLMES_ASSIGN_OR_RETURN(Value value, Lookup(name));
    std::string spec_text;
    if (colon < field.size()) {
      HOLMES_ASSIGN_OR_RETURN(spec_text, Run(field.substr(colon + 1), depth + 1));
    }
    const bool plain = !value.is_string() && (conversion == 0 && spec_text.empty());
    if (conversion != 0 || plain) HOLMES_RETURN_IF_ERROR(budget_.SpendDeeply(value));
    if (conversion == 'r') value = Value(value.Repr());
    if (conversion == 's' || plain) value = Value(value.ToString());
    HOLMES_ASSIGN_OR_RETURN(const Spec spec, ReadSpec(spec_text));
    return FormatValue(value, spec, budget_);
  }

  StatusOr<Value> Lookup(std::string_view name) {
    const std::size_t end = std::min(name.find_first_of(".["), name.size());
    if (end < name.size())
      return base::UnimplementedError(
          fmt::format("format: attributes and items, as in '{}', are not supported", name));
    std::string_view digits = name;
    HOLMES_ASSIGN_OR_RETURN(const auto number, TakeNumber(digits));
    if (name.empty() || (number && digits.empty())) {
      if (numbered_ && *numbered_ == name.empty())
        return Refuse("cannot mix automatic and manual field numbering");
      numbered_ = !name.empty();
      const auto at = static_cast<std::size_t>(name.empty() ? next_++ : *number);
      if (at < arguments_.positional.size()) return arguments_.positional[at];
      return Refuse(fmt::format("Replacement index {} out of range for positional args tuple", at));
    }
    for (const auto& [given, value] : arguments_.named) {
      if (given == name) return value;
    }
    return Refuse(fmt::format("'{}'", name));
  }

  const Arguments& arguments_;
  RenderBudget& budget_;
  std::optional<bool> numbered_;  // whether fields bear numbers; unset before the first
  std::int64_t next_ = 0;
};

}  // namespace

StatusOr<std::string> FormatPercent(std::string_view format,
                                    const Value& values,
                                    RenderBudget& budget) {
  return PercentFormatter(format, values, budget).Run();
}

StatusOr<std::string> FormatBraces(std::string_view format,
                                   const Arguments& arguments,
                                   RenderBudget& budget) {
  return BraceFormatter(arguments, budget).Run(format, 0);
}

}  // namespace holmes::text
