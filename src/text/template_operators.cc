#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/template_builtins.h"
#include "text/template_format.h"
#include "text/template_strings.h"

namespace holmes::text {
namespace {

Status TypeError(std::string message) { return base::InvalidArgumentError(std::move(message)); }

Status UndefinedError(const Value& value) {
  return base::InvalidArgumentError(fmt::format("'{}' is undefined", value.undefined_name()));
}

StatusOr<Value> IntegerArithmetic(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  bool overflow = false;
  if (op == "+")
    overflow = __builtin_add_overflow(a, b, &out);
  else if (op == "-")
    overflow = __builtin_sub_overflow(a, b, &out);
  else if (op == "*")
    overflow = __builtin_mul_overflow(a, b, &out);
  else if (op == "**") {
    if (b < 0) return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
    out = 1;
    for (std::int64_t i = 0; i < b && !overflow; ++i) {
      overflow = __builtin_mul_overflow(out, a, &out);
      if (a == 0 || a == 1 || (a == -1 && i > 1)) break;
    }
    if (a == -1) out = b % 2 == 0 ? 1 : -1;
    if (a == 0) out = b == 0 ? 1 : 0;
  } else {
    if (b == 0) return TypeError("division by zero");
    if (a == INT64_MIN && b == -1) return TypeError("an integer is too large");
    out = a / b;
    if (a % b != 0 && (a < 0) != (b < 0)) --out;
    if (op == "%") out = a - out * b;
  }
  if (overflow) return TypeError("an integer is too large");
  return Value(out);
}

StatusOr<Value> Arithmetic(std::string_view op, const Value& a, const Value& b) {
  if (!a.is_float() && !b.is_float() && op != "/")
    return IntegerArithmetic(op, a.as_int(), b.as_int());
  const double x = a.as_double();
  const double y = b.as_double();
  if (op == "+") return Value(x + y);
  if (op == "-") return Value(x - y);
  if (op == "*") return Value(x * y);
  if (op == "**") return Value(std::pow(x, y));
  if (y == 0) return TypeError("division by zero");
  if (op == "/") return Value(x / y);
  if (op == "//") return Value(std::floor(x / y));
  return Value(x - std::floor(x / y) * y);
}

StatusOr<Value> Repeat(const Value& value, std::int64_t count, RenderBudget& budget) {
  count = std::max<std::int64_t>(0, count);
  const std::size_t unit =
      value.is_string() ? value.as_string().size() : value.as_list().size() * sizeof(Value);
  if (unit == 0) return value;
  if (static_cast<std::uint64_t>(count) > budget.options().max_output_bytes)
    return budget.CheckSize(budget.options().max_output_bytes + 1);
  HOLMES_RETURN_IF_ERROR(budget.CheckSize(unit * static_cast<std::size_t>(count)));
  if (value.is_string()) {
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) out += value.as_string();
    return Value(std::move(out));
  }
  List out;
  for (std::int64_t i = 0; i < count; ++i)
    out.insert(out.end(), value.as_list().begin(), value.as_list().end());
  return value.is_tuple() ? Value::Tuple(std::move(out)) : Value(std::move(out));
}

/// -1, 0, 1; empty when the two have no order.
std::optional<int> Order(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.as_double() < b.as_double() ? -1 : a.as_double() > b.as_double() ? 1 : 0;
  if (a.is_string() && b.is_string())
    return std::clamp(a.as_string().compare(b.as_string()), -1, 1);
  if (!a.is_list() || !b.is_list()) return std::nullopt;
  for (std::size_t i = 0; i < std::min(a.as_list().size(), b.as_list().size()); ++i) {
    if (!(a.as_list()[i] == b.as_list()[i])) return Order(a.as_list()[i], b.as_list()[i]);
  }
  const auto left = a.as_list().size();
  const auto right = b.as_list().size();
  return left < right ? -1 : left > right ? 1 : 0;
}

StatusOr<bool> Contains(const Value& container, const Value& item) {
  if (container.is_undefined()) return false;
  if (container.is_string()) {
    if (!item.is_string())
      return TypeError(
          fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
    return container.as_string().find(item.as_string()) != std::string::npos;
  }
  if (container.is_dict()) {
    const std::optional<std::string> key = DictKey(item);
    return key && container.Find(*key) != nullptr;
  }
  if (container.is_list())
    return std::find(container.as_list().begin(), container.as_list().end(), item) !=
           container.as_list().end();
  return TypeError(fmt::format("argument of type '{}' is not iterable", container.type_name()));
}

}  // namespace

Status RenderBudget::Spend(std::int64_t steps) {
  steps_left_ -= std::min(steps, std::max<std::int64_t>(steps_left_ + 1, 0));
  if (steps_left_ >= 0) return OkStatus();
  return base::ResourceExhaustedError(
      fmt::format("the chat template takes more than {} steps", options_.max_steps));
}

Status RenderBudget::SpendOn(const Value& value) {
  if (value.is_string()) return Spend(static_cast<std::int64_t>(value.as_string().size() / 64));
  if (value.is_list()) return Spend(static_cast<std::int64_t>(value.as_list().size() / 16));
  if (value.is_dict()) return Spend(static_cast<std::int64_t>(value.as_dict().size() / 16));
  return OkStatus();
}

Status RenderBudget::SpendDeeply(const Value& value) {
  HOLMES_RETURN_IF_ERROR(CheckValue(value));
  return Spend(static_cast<std::int64_t>(value.weight() / 64));
}

Status RenderBudget::CheckValue(const Value& value) const {
  if (value.depth() > kMaxValueDepth)
    return base::ResourceExhaustedError(
        fmt::format("the chat template nests values more than {} levels deep", kMaxValueDepth));
  const std::uint64_t weight = value.weight();
  // Short elements take a few bytes of their own, which are no text yet.
  if (weight / 4 <= options_.max_output_bytes + allowed_) return OkStatus();
  return base::ResourceExhaustedError(fmt::format(
      "the chat template makes a value of more than {} bytes", options_.max_output_bytes));
}

Status RenderBudget::CheckSize(std::size_t bytes) const {
  if (bytes <= options_.max_output_bytes) return OkStatus();
  return base::ResourceExhaustedError(fmt::format(
      "the chat template makes a text of more than {} bytes", options_.max_output_bytes));
}

StatusOr<Value> ApplyBinary(std::string_view op,
                            const Value& left,
                            const Value& right,
                            RenderBudget& budget) {
  if (op == "~") {
    HOLMES_RETURN_IF_ERROR(budget.SpendDeeply(left));
    HOLMES_RETURN_IF_ERROR(budget.SpendDeeply(right));
    std::string out = left.ToString() + right.ToString();
    HOLMES_RETURN_IF_ERROR(budget.CheckSize(out.size()));
    return Value(std::move(out));
  }
  if (op == "%" && left.is_string()) {
    HOLMES_ASSIGN_OR_RETURN(std::string out, FormatPercent(left.as_string(), right, budget));
    return Value(std::move(out));
  }
  if (left.is_undefined()) return UndefinedError(left);
  if (right.is_undefined()) return UndefinedError(right);
  if (left.is_number() && right.is_number()) return Arithmetic(op, left, right);
  if (op == "+" && left.is_string() && right.is_string()) {
    HOLMES_RETURN_IF_ERROR(budget.CheckSize(left.as_string().size() + right.as_string().size()));
    return Value(left.as_string() + right.as_string());
  }
  if (op == "+" && left.is_list() && right.is_list()) {
    HOLMES_RETURN_IF_ERROR(
        budget.CheckSize((left.as_list().size() + right.as_list().size()) * sizeof(Value)));
    if (left.is_tuple() != right.is_tuple())
      return TypeError(fmt::format(
          "can only concatenate {0} (not \"{1}\") to {0}", left.type_name(), right.type_name()));
    List out = left.as_list();
    out.insert(out.end(), right.as_list().begin(), right.as_list().end());
    return left.is_tuple() ? Value::Tuple(std::move(out)) : Value(std::move(out));
  }
  if (op == "*" && (left.is_string() || left.is_list()) && right.is_int())
    return Repeat(left, right.as_int(), budget);
  if (op == "*" && (right.is_string() || right.is_list()) && left.is_int())
    return Repeat(right, left.as_int(), budget);
  if (op == "+" && left.is_string())
    return TypeError(
        fmt::format("can only concatenate str (not \"{}\") to str", right.type_name()));
  return TypeError(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'",
                               op,
                               left.type_name(),
                               right.type_name()));
}

StatusOr<bool> ApplyCompare(std::string_view op, const Value& left, const Value& right) {
  if (op == "==") return left == right;
  if (op == "!=") return !(left == right);
  if (op == "in") return Contains(right, left);
  if (op == "not in") {
    HOLMES_ASSIGN_OR_RETURN(const bool inside, Contains(right, left));
    return !inside;
  }
  if (left.is_undefined()) return UndefinedError(left);
  if (right.is_undefined()) return UndefinedError(right);
  const std::optional<int> order = Order(left, right);
  if (!order)
    return TypeError(fmt::format("'{}' not supported between instances of '{}' and '{}'",
                                 op,
                                 left.type_name(),
                                 right.type_name()));
  if (op == "<") return *order < 0;
  if (op == "<=") return *order <= 0;
  if (op == ">") return *order > 0;
  return *order >= 0;
}

StatusOr<Value> GetItem(const Value& object, const Value& key) {
  if (object.is_undefined()) return UndefinedError(object);
  if (object.is_dict() || object.is_namespace()) {
    const std::optional<std::string> name = DictKey(key);
    const Value* found = name ? object.Find(*name) : nullptr;
    return found != nullptr ? *found : Value(Undefined{key.ToString()});
  }
  if (object.is_list() && key.is_number() && !key.is_float()) {
    const auto size = static_cast<std::int64_t>(object.as_list().size());
    const std::int64_t at = key.as_int() < 0 ? key.as_int() + size : key.as_int();
    return at >= 0 && at < size ? object.as_list()[static_cast<std::size_t>(at)]
                                : Value(Undefined{key.ToString()});
  }
  if (object.is_string() && key.is_number() && !key.is_float()) {
    const std::vector<char32_t> characters = Characters(object.as_string());
    const auto size = static_cast<std::int64_t>(characters.size());
    const std::int64_t at = key.as_int() < 0 ? key.as_int() + size : key.as_int();
    if (at < 0 || at >= size) return Value(Undefined{key.ToString()});
    return Value(FromCharacters({characters[static_cast<std::size_t>(at)]}));
  }
  return Value(Undefined{key.ToString()});
}

StatusOr<Value> GetSlice(const Value& object,
                         const Value& start,
                         const Value& stop,
                         const Value& step) {
  if (object.is_undefined()) return UndefinedError(object);
  if (!object.is_string() && !object.is_list())
    return TypeError(fmt::format("'{}' object cannot be sliced", object.type_name()));
  for (const Value* part : {&start, &stop, &step}) {
    if (!part->is_none() && (!part->is_number() || part->is_float()))
      return TypeError("slice indices must be integers or None");
  }
  const std::vector<char32_t> characters =
      object.is_string() ? Characters(object.as_string()) : std::vector<char32_t>();
  const auto size =
      static_cast<std::int64_t>(object.is_string() ? characters.size() : object.as_list().size());
  const std::int64_t by = step.is_none() ? 1 : step.as_int();
  if (by == 0) return TypeError("slice step cannot be zero");
  const auto place = [&](const Value& part, std::int64_t fallback) {
    if (part.is_none()) return fallback;
    const std::int64_t at = part.as_int() < 0 ? part.as_int() + size : part.as_int();
    return by > 0 ? std::clamp<std::int64_t>(at, 0, size)
                  : std::clamp<std::int64_t>(at, -1, size - 1);
  };
  const std::int64_t begin = place(start, by > 0 ? 0 : size - 1);
  const std::int64_t end = place(stop, by > 0 ? size : -1);
  List list;
  std::vector<char32_t> text;
  for (std::int64_t i = begin; by > 0 ? i < end : i > end; i += by) {
    if (object.is_string()) {
      text.push_back(characters[static_cast<std::size_t>(i)]);
    } else {
      list.push_back(object.as_list()[static_cast<std::size_t>(i)]);
    }
    if (by > size || by < -size) break;
  }
  if (object.is_string()) return Value(FromCharacters(text));
  return object.is_tuple() ? Value::Tuple(std::move(list)) : Value(std::move(list));
}

StatusOr<List> Iterate(const Value& value) {
  if (value.is_list()) return value.as_list();
  if (value.is_undefined()) return List();
  List out;
  if (value.is_string()) {
    for (const char32_t c : Characters(value.as_string())) out.emplace_back(FromCharacters({c}));
    return out;
  }
  if (value.is_dict()) {
    for (const auto& [key, item] : value.as_dict()) out.push_back(DictKeyValue(key));
    return out;
  }
  return TypeError(fmt::format("'{}' object is not iterable", value.type_name()));
}

StatusOr<std::int64_t> Length(const Value& value) {
  if (value.is_undefined()) return std::int64_t{0};
  if (value.is_string()) return static_cast<std::int64_t>(Characters(value.as_string()).size());
  if (value.is_list()) return static_cast<std::int64_t>(value.as_list().size());
  if (value.is_dict()) return static_cast<std::int64_t>(value.as_dict().size());
  return TypeError(fmt::format("object of type '{}' has no len()", value.type_name()));
}

void SetKey(Dict& dict, const std::string& key, Value value) {
  for (auto& [existing, current] : dict) {
    if (existing != key) continue;
    current = std::move(value);
    return;
  }
  dict.emplace_back(key, std::move(value));
}

const Value* FindArgument(const Arguments& arguments, std::size_t index, std::string_view name) {
  if (index < arguments.positional.size()) return &arguments.positional[index];
  for (const auto& [given, value] : arguments.named) {
    if (given == name) return &value;
  }
  return nullptr;
}

}  // namespace holmes::text
