#include "api/json_object.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/edit_distance.h"

namespace holmes::api {
namespace {

namespace json = boost::json;
constexpr std::size_t kMaxDepth = 64;

}  // namespace

StatusOr<json::value> ParseJson(std::string_view body) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code error;
  json::value value;
  try {
    json::stream_parser parser({}, options);
    const std::size_t used = parser.write_some(body.data(), body.size(), error);
    if (!error && used < body.size()) {
      const bool only_space = body.find_first_not_of(" \t\r\n", used) == std::string_view::npos;
      if (!only_space) error = json::error::extra_data;
    }
    if (!error) parser.finish(error);
    if (error)
      return base::InvalidArgumentError(
          fmt::format("the body is not valid JSON: {} at byte {}", error.message(), used));
    value = parser.release();
  } catch (const std::exception& exception) {
    return base::InvalidArgumentError(
        fmt::format("the body cannot be read as JSON: {}", exception.what()));
  }
  return value;
}

std::string_view KindName(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "boolean";
    case json::kind::int64:
    case json::kind::uint64:
      return "integer";
    case json::kind::double_:
      return "number";
    case json::kind::string:
      return "string";
    case json::kind::array:
      return "array";
    case json::kind::object:
      return "object";
  }
  return "unknown";
}

text::Value ToTemplateValue(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return {};
    case json::kind::bool_:
      return value.get_bool();
    case json::kind::int64:
      return std::int64_t{value.get_int64()};
    case json::kind::uint64:
      return static_cast<double>(value.get_uint64());
    case json::kind::double_:
      return value.get_double();
    case json::kind::string:
      return std::string(value.get_string());
    case json::kind::array: {
      text::List list;
      for (const json::value& item : value.get_array()) list.push_back(ToTemplateValue(item));
      return list;
    }
    case json::kind::object: {
      text::Dict dict;
      for (const auto& item : value.get_object())
        dict.emplace_back(std::string(item.key()), ToTemplateValue(item.value()));
      return dict;
    }
  }
  return {};
}

const json::value* ObjectReader::Get(std::string_view name) {
  known_.emplace(name);
  const json::value* value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void ObjectReader::Fail(std::string_view name, std::string message) {
  if (!status_.ok()) return;
  const std::string field = prefix_ + std::string(name);
  status_ = base::InvalidArgumentError(fmt::format("'{}' {}", field, message)).WithParam(field);
}

void ObjectReader::FailUnsupported(std::string_view name) {
  if (!status_.ok()) return;
  const std::string field = prefix_ + std::string(name);
  status_ = base::UnimplementedError(fmt::format("'{}' is not supported yet; leave it out", field))
                .WithParam(field);
}

void ObjectReader::FailKind(std::string_view name,
                            const json::value& found,
                            std::string_view expected) {
  Fail(name, fmt::format("is of type {}, {} is expected", KindName(found), expected));
}

std::optional<double> ObjectReader::Number(std::string_view name,
                                           double low,
                                           double high,
                                           bool low_excluded) {
  const json::value* value = Get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    FailKind(name, *value, "a number");
    return std::nullopt;
  }
  const double number = value->to_number<double>();
  const bool fits =
      std::isfinite(number) && number <= high && (low_excluded ? number > low : number >= low);
  if (!fits) {
    Fail(name,
         fmt::format("is {}, a number {} {} and at most {} is expected",
                     number,
                     low_excluded ? "above" : "of at least",
                     low,
                     high));
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> ObjectReader::Integer(std::string_view name,
                                                  std::int64_t low,
                                                  std::int64_t high) {
  const json::value* value = Get(name);
  if (value == nullptr) return std::nullopt;
  json::error_code error;
  const auto number = value->is_number() ? value->to_number<std::int64_t>(error) : 0;
  if (!value->is_number() || error) {
    if (value->is_uint64()) {
      Fail(name, fmt::format("is {}, at most {} is expected", value->get_uint64(), high));
    } else if (value->is_double()) {
      Fail(name, fmt::format("is {}, an integer is expected", value->get_double()));
    } else {
      FailKind(name, *value, "an integer");
    }
    return std::nullopt;
  }
  if (number < low || number > high) {
    Fail(name, fmt::format("is {}, an integer from {} to {} is expected", number, low, high));
    return std::nullopt;
  }
  return number;
}

std::optional<bool> ObjectReader::Bool(std::string_view name) {
  const json::value* value = Get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) {
    FailKind(name, *value, "a boolean");
    return std::nullopt;
  }
  return value->get_bool();
}

std::optional<std::string> ObjectReader::String(std::string_view name) {
  const json::value* value = Get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    FailKind(name, *value, "a string");
    return std::nullopt;
  }
  return std::string(value->get_string());
}

std::vector<std::int32_t> ObjectReader::Ids(std::string_view name) {
  std::vector<std::int32_t> out;
  const json::value* value = Get(name);
  if (value == nullptr) return out;
  if (!value->is_array()) {
    FailKind(name, *value, "an array of token ids");
    return out;
  }
  for (const json::value& item : value->get_array()) {
    json::error_code error;
    const auto id = item.is_number() ? item.to_number<std::int32_t>(error) : -1;
    if (!item.is_number() || error || id < 0) {
      Fail(name, fmt::format("holds {}, token ids are integers from 0", json::serialize(item)));
      return out;
    }
    out.push_back(id);
  }
  return out;
}

Status ObjectReader::Finish() {
  if (!status_.ok()) return status_;
  for (const auto& item : object_) {
    const std::string name(item.key());
    if (known_.contains(name)) continue;
    Fail(name,
         fmt::format("is not a known field; the nearest one is '{}'", base::Nearest(name, known_)));
    break;
  }
  return status_;
}

}  // namespace holmes::api
