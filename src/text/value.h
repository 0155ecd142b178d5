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

/// Cheap to copy: strings and containers are shared and never changed, except for the template
/// language's namespace objects, which belong to one rendering. Copying and reading values is
/// thread-safe as long as no namespace is shared.
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
      : Value(MakeListBox(std::move(list), false)) {}  // NOLINT(google-explicit-constructor)
  Value(Dict dict)
      : Value(MakeDictBox(std::move(dict), false)) {}  // NOLINT(google-explicit-constructor)
  Value(Function function)
      : data_(std::make_shared<const Function>(std::move(function))) {
  }  // NOLINT(google-explicit-constructor)

  /// A list that prints in parentheses and equals no list.
  static Value Tuple(List list) { return Value(MakeListBox(std::move(list), true)); }
  /// What {% set x.a = ... %} may change. It is no mapping, and equals only itself.
  static Value Namespace(Dict dict) { return Value(MakeDictBox(std::move(dict), true)); }

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
  /// Tuples too.
  bool is_list() const { return std::holds_alternative<std::shared_ptr<const ListBox>>(data_); }
  bool is_tuple() const;
  bool is_dict() const;
  bool is_namespace() const;
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
  const List& as_list() const;
  /// Of a dict or a namespace.
  const Dict& as_dict() const;
  const Function& as_function() const { return *std::get<std::shared_ptr<const Function>>(data_); }
  const std::string& undefined_name() const {
    return std::get<std::shared_ptr<const Undefined>>(data_)->name;
  }
  /// Precondition: is_namespace(). The attributes may be assigned values that hold no reference.
  Dict& namespace_dict() const;

  /// Levels of containers: 0 for what is none. Namespaces inside containers count as one level.
  int depth() const;
  /// About how many bytes the value takes when printed, shared parts counted each time;
  /// saturates. Namespaces inside containers count as one.
  std::uint64_t weight() const;
  /// Whether the value is or contains a namespace or a callable: such a value inside a namespace
  /// could form a cycle or outlive what it refers to.
  bool holds_reference() const;

  /// Null when the value is no dict or namespace, or has no such key.
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
  struct ListBox;
  struct DictBox;
  static std::shared_ptr<const ListBox> MakeListBox(List list, bool tuple);
  static std::shared_ptr<DictBox> MakeDictBox(Dict dict, bool is_namespace);
  explicit Value(std::shared_ptr<const ListBox> box) : data_(std::move(box)) {}
  explicit Value(std::shared_ptr<DictBox> box) : data_(std::move(box)) {}

  std::variant<std::monostate,
               std::shared_ptr<const Undefined>,
               bool,
               std::int64_t,
               double,
               std::shared_ptr<const std::string>,
               std::shared_ptr<const ListBox>,
               std::shared_ptr<DictBox>,
               std::shared_ptr<const Function>>
      data_;
};

/// The key under which a Dict keeps `key`: strings as they are; integers, floats and none as a byte
/// that no text has (0xFF) and the number. Empty for what cannot be a key here.
std::optional<std::string> DictKey(const Value& key);
/// The value whose DictKey is `key`.
Value DictKeyValue(std::string_view key);

/// Python's repr of a float: the shortest digits that read back the same.
std::string FloatRepr(double value);

/// How transformers' tojson writes: json.dumps(ensure_ascii=False, indent, separators, sort_keys).
struct JsonOptions {
  int indent = -1;                            // -1: one line
  std::optional<std::string> item_separator;  // unset: ", ", between lines ","
  std::string key_separator = ": ";
  bool sort_keys = false;
  bool ensure_ascii = false;
  std::string indent_text;  // in place of `indent` blanks, when not empty
};
/// Errors: kInvalidArgument for what JSON cannot hold (undefined, callables).
StatusOr<std::string> ToJson(const Value& value, const JsonOptions& options);

}  // namespace holmes::text
