/// Reading a JSON object field by field, with errors that name the field. Internal to api.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/value.h"

namespace holmes::api {

/// Limits: 64 levels; UTF-8 is required. Errors: kInvalidArgument with the place.
StatusOr<boost::json::value> ParseJson(std::string_view body);

/// "string", "array" ... of a JSON value, for messages.
std::string_view KindName(const boost::json::value& value);

/// JSON to the template language.
text::Value ToTemplateValue(const boost::json::value& value);

/// Collects the first error, so that a caller reads all fields in a row and asks once.
class ObjectReader {
 public:
  /// `prefix` goes before field names in errors ("stream_options.").
  ObjectReader(const boost::json::object& object, std::string prefix)
      : object_(object), prefix_(std::move(prefix)) {}

  /// Null when absent or null. Marks the field as known.
  const boost::json::value* Get(std::string_view name);
  std::optional<double> Number(std::string_view name,
                               double low,
                               double high,
                               bool low_excluded = false);
  std::optional<std::int64_t> Integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<bool> Bool(std::string_view name);
  std::optional<std::string> String(std::string_view name);
  /// A token id list of non-negative integers.
  std::vector<std::int32_t> Ids(std::string_view name);

  /// The field is known and accepted without effect (metadata of the caller).
  void Accept(std::string_view name) { known_.insert(std::string(name)); }
  /// The field is known but not supported: an error unless `harmless` says that this value asks for
  /// nothing.
  template <typename Harmless>
  void Refuse(std::string_view name, Harmless&& harmless) {
    const boost::json::value* value = Get(name);
    if (value != nullptr && !harmless(*value)) FailUnsupported(name);
  }

  void Fail(std::string_view name, std::string message);
  void FailUnsupported(std::string_view name);
  void FailKind(std::string_view name, const boost::json::value& found, std::string_view expected);
  bool ok() const { return status_.ok(); }
  /// The first error; otherwise an error for the first field that nobody asked for.
  Status Finish();

 private:
  const boost::json::object& object_;
  std::string prefix_;
  std::set<std::string> known_;
  Status status_;
};

}  // namespace holmes::api
