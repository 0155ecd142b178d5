/// Values of the template language: what JSON holds, plus undefined and callables. Numbers, strings
/// and containers as Python has them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace holmes::text {

class Value;

struct Undefined {
  std::string name;  // of the variable or attribute, for messages
};

/// A call's arguments.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

using Function = std::function<StatusOr<Value>(const Arguments&)>;
using List = std::vector<Value>;
/// Keys keep the order in which they came.
using Dict = std::vector<std::pair<std::string, Value>>;

/// Cheap to copy: strings and containers are shared. A container is changed only by who made it and
/// before it is shared, except for the template language's namespace objects.
class Value {
 public:
  Value() = default;        // none
  Value(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  Value(Undefined u)
      : data_(std::make_shared<const Undefined>(std::move(u))) {
  }                                         // NOLINT(google-explicit-constructor)
  Value(bool b) : data_(b) {}               // NOLINT(google-explicit-constructor)
  Value(std::int64_t i) : data_(i) {}       // NOLINT(google-explicit-constructor)
  Value(int i) : data_(std::int64_t{i}) {}  // NOLINT(google-explicit-constructor)
  Value(double d) : data_(d) {}             // NOLINT(google-explicit-constructor)
  Value(std::string s)
      : data_(std::make_shared<const std::string>(std::move(s))) {
  }                                                     // NOLINT(google-explicit-constructor)
  Value(std::string_view s) : Value(std::string(s)) {}  // NOLINT(google-explicit-constructor)
  Value(const char* s) : Value(std::string(s)) {}       // NOLINT(google-explicit-constructor)
  Value(List list)
      : data_(std::make_shared<List>(std::move(list))) {}  // NOLINT(google-explicit-constructor)
  Value(Dict dict)
      : data_(std::make_shared<Dict>(std::move(dict))) {}  // NOLINT(google-explicit-constructor)
  Value(Function function)
      : data_(std::make_shared<const Function>(std::move(function))) {
  }  // NOLINT(google-explicit-constructor)

  bool is_none() const { return std::holds_alternative<std::monostate>(data_); }
  bool is_undefined() const {
    return std::holds_alternative<std::shared_ptr<const Undefined>>(data_);
  }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  /// As in Python, a bool is a number too.
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_string() const {
    return std::holds_alternative<std::shared_ptr<const std::string>>(data_);
  }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<List>>(data_); }
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<Dict>>(data_); }
  bool is_function() const {
    return std::holds_alternative<std::shared_ptr<const Function>>(data_);
  }

  /// Preconditions: the value is of that kind (as_int and as_double take any number).
  bool as_bool() const { return std::get<bool>(data_); }
  std::int64_t as_int() const;
  double as_double() const;
  const std::string& as_string() const {
    return *std::get<std::shared_ptr<const std::string>>(data_);
  }
  const List& as_list() const { return *std::get<std::shared_ptr<List>>(data_); }
  const Dict& as_dict() const { return *std::get<std::shared_ptr<Dict>>(data_); }
  const Function& as_function() const { return *std::get<std::shared_ptr<const Function>>(data_); }
  const std::string& undefined_name() const {
    return std::get<std::shared_ptr<const Undefined>>(data_)->name;
  }
  /// For namespace objects, which templates may change.
  Dict& mutable_dict() const { return *std::get<std::shared_ptr<Dict>>(data_); }

  /// Null when the value is no dict or has no such key.
  const Value* Find(std::string_view key) const;

  /// Python's truth: empty, zero, none and undefined are false.
  bool Truthy() const;
  /// Python's str(): what {{ value }} prints. Undefined is empty.
  std::string ToString() const;
  /// Python's repr(): how an element prints inside a list.
  std::string Repr() const;
  /// Python's ==.
  friend bool operator==(const Value& a, const Value& b);
  /// "string", "list" and so on, Python's names.
  std::string_view type_name() const;

 private:
  std::variant<std::monostate,
               std::shared_ptr<const Undefined>,
               bool,
               std::int64_t,
               double,
               std::shared_ptr<const std::string>,
               std::shared_ptr<List>,
               std::shared_ptr<Dict>,
               std::shared_ptr<const Function>>
      data_;
};

/// Python's repr of a float: the shortest digits that read back the same.
std::string FloatRepr(double value);

/// How transformers' tojson writes: json.dumps(ensure_ascii=False, indent, separators, sort_keys).
struct JsonOptions {
  int indent = -1;  // -1: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
/// Errors: kInvalidArgument for what JSON cannot hold (undefined, callables).
StatusOr<std::string> ToJson(const Value& value, const JsonOptions& options);

}  // namespace holmes::text
