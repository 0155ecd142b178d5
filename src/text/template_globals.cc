// The functions that every template sees.
#include <fmt/format.h>

#include <array>
#include <ctime>

#include "text/template_interpreter.h"

namespace holmes::text {
namespace {

constexpr std::size_t kMaxCyclers = 1000;
constexpr std::int64_t kMaxRange = 100'000;  // jinja2's sandbox has the same

StatusOr<Value> Range(const Arguments& arguments) {
  std::array<std::int64_t, 3> bounds = {0, 0, 1};
  const std::size_t count = arguments.positional.size();
  if (count < 1 || count > 3)
    return base::InvalidArgumentError(
        fmt::format("range expected 1 to 3 arguments, got {}", count));
  for (std::size_t i = 0; i < count; ++i) {
    const Value& value = arguments.positional[i];
    if (!value.is_number() || value.is_float())
      return base::InvalidArgumentError(
          fmt::format("'{}' object cannot be interpreted as an integer", value.type_name()));
    bounds[count == 1 ? 1 : i] = value.as_int();
  }
  const auto [start, stop, step] = bounds;
  if (step == 0) return base::InvalidArgumentError("range() arg 3 must not be zero");
  List out;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(out.size()) == kMaxRange)
      return base::ResourceExhaustedError(
          fmt::format("Range too big. The sandbox blocks ranges larger than {}.", kMaxRange));
    out.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value(std::move(out));
}

/// namespace(a=1) and dict(a=1), also with a dict or pairs to begin from.
StatusOr<Dict> MakeDict(const Arguments& arguments) {
  Dict out;
  if (!arguments.positional.empty() && arguments.positional[0].is_dict()) {
    out = arguments.positional[0].as_dict();
  } else if (!arguments.positional.empty()) {
    HOLMES_ASSIGN_OR_RETURN(const List pairs, Iterate(arguments.positional[0]));
    for (const Value& pair : pairs) {
      const std::optional<std::string> key =
          pair.is_list() && pair.as_list().size() == 2 ? DictKey(pair.as_list()[0]) : std::nullopt;
      if (!key) return base::InvalidArgumentError("dict() needs a mapping or pairs");
      SetKey(out, *key, pair.as_list()[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) SetKey(out, name, value);
  return out;
}

StatusOr<Value> StrftimeNow(const Arguments& arguments, const RenderOptions& options) {
  if (arguments.positional.size() != 1 || !arguments.positional[0].is_string())
    return base::InvalidArgumentError("strftime_now needs a format");
  const std::time_t now = options.now.value_or(std::time(nullptr));
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 1024> buffer{};
  const std::size_t length = std::strftime(
      buffer.data(), buffer.size(), arguments.positional[0].as_string().c_str(), &local);
  return Value(std::string(buffer.data(), length));
}

}  // namespace

/// cycler(...): next() gives its items in turn, current is the one that comes next.
StatusOr<Value> Interpreter::MakeCycler(const Arguments& arguments) {
  if (arguments.positional.empty())
    return base::InvalidArgumentError("at least one item has to be provided");
  if (cyclers_.size() == kMaxCyclers)
    return base::ResourceExhaustedError(
        fmt::format("the chat template makes more than {} cyclers", kMaxCyclers));
  const std::size_t place = cyclers_.size();
  const auto items = std::make_shared<const List>(arguments.positional);
  const auto at = std::make_shared<std::size_t>(0);
  // A cycler that held itself would never end: its functions find it by its place.
  const auto move_to = [this, place, items, at](std::size_t next) {
    *at = next % items->size();
    SetKey(cyclers_[place].namespace_dict(), "current", (*items)[*at]);
  };
  cyclers_.push_back(Value::Namespace(
      {{"current", items->front()},
       {"next", Function([items, at, move_to](const Arguments&) -> StatusOr<Value> {
          Value out = (*items)[*at];
          move_to(*at + 1);
          return out;
        })},
       {"reset", Function([move_to](const Arguments&) -> StatusOr<Value> {
          move_to(0);
          const Value none;  // by name: g++ 12 sees an unset one in a temporary
          return none;
        })}}));
  return cyclers_.back();
}

void Interpreter::AddGlobals() {
  globals_.Set("range", Function(Range));
  globals_.Set("namespace", Function([](const Arguments& arguments) -> StatusOr<Value> {
                 HOLMES_ASSIGN_OR_RETURN(Dict dict, MakeDict(arguments));
                 return Value::Namespace(std::move(dict));
               }));
  globals_.Set("cycler",
               Function([this](const Arguments& arguments) { return MakeCycler(arguments); }));
  globals_.Set("joiner", Function([](const Arguments& arguments) -> StatusOr<Value> {
                 const Value* given = FindArgument(arguments, 0, "sep");
                 const Value separator = given != nullptr ? *given : Value(", ");
                 const auto used = std::make_shared<bool>(false);
                 return Value(Function([separator, used](const Arguments&) -> StatusOr<Value> {
                   return std::exchange(*used, true) ? separator : Value("");
                 }));
               }));
  globals_.Set("dict", Function([](const Arguments& arguments) -> StatusOr<Value> {
                 HOLMES_ASSIGN_OR_RETURN(Dict dict, MakeDict(arguments));
                 return Value(std::move(dict));
               }));
  globals_.Set(
      "raise_exception", Function([this](const Arguments& arguments) -> StatusOr<Value> {
        raised_ = true;
        const Value* message = FindArgument(arguments, 0, "message");
        return base::InvalidArgumentError(
            message != nullptr ? message->ToString() : "the chat template refuses these messages");
      }));
  globals_.Set("strftime_now", Function([this](const Arguments& arguments) {
                 return StrftimeNow(arguments, budget_.options());
               }));
}

}  // namespace holmes::text
