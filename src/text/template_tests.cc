// The tests of `is`.
#include <fmt/format.h>

#include <map>

#include "text/template_builtins.h"
#include "text/template_parser.h"
#include "text/template_strings.h"

namespace holmes::text {
namespace {

Status TypeError(std::string message) { return base::InvalidArgumentError(std::move(message)); }

using Test = bool (*)(const Value& input);

const std::map<std::string, Test, std::less<>>& PlainTests() {
  static const std::map<std::string, Test, std::less<>> tests = {
      {"boolean", [](const Value& v) { return v.is_bool(); }},
      // An undefined value has a call, which refuses.
      {"callable", [](const Value& v) { return v.is_function() || v.is_undefined(); }},
      {"defined", [](const Value& v) { return !v.is_undefined(); }},
      {"escaped", [](const Value&) { return false; }},  // there is no markup
      {"even", [](const Value& v) { return v.is_number() && v.as_int() % 2 == 0; }},
      {"false", [](const Value& v) { return v.is_bool() && !v.as_bool(); }},
      {"filter", [](const Value& v) { return v.is_string() && IsKnownFilter(v.as_string()); }},
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
      {"test", [](const Value& v) { return v.is_string() && IsKnownTest(v.as_string()); }},
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

bool IsKnownTest(std::string_view name) {
  return PlainTests().find(name) != PlainTests().end() ||
         ComparingTests().find(name) != ComparingTests().end();
}

StatusOr<bool> ApplyTest(std::string_view name, const Value& input, const Arguments& arguments) {
  if ((name == "odd" || name == "even") && !input.is_number())
    return TypeError(
        fmt::format("unsupported operand type(s) for %: '{}' and 'int'", input.type_name()));
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
