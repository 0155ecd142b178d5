/// JSON from model folders, with limits on size and depth. Internal to weights: Boost.JSON stays
/// out of the public headers.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace holmes::weights {

inline constexpr int kJsonMaxDepth = 32;

/// Parses one document. Duplicate keys: the last one counts. `file_name` is used in messages only.
/// Errors: kDataLoss with the byte where parsing stopped.
StatusOr<boost::json::value> ParseJson(std::string_view text, std::string_view file_name);

/// The whole file as bytes. Errors: kNotFound and others by errno, kInvalidArgument when it is not
/// a regular file, kResourceExhausted when it has more than `max_bytes`.
StatusOr<std::string> ReadSmallFile(const std::string& path, std::uint64_t max_bytes);

/// Looks up "a.b.c" from object to object; a key that itself contains dots is found when it is
/// whole at the top. Null when absent.
const boost::json::value* FindPath(const boost::json::value& root, std::string_view path);

/// Empty unless the value is a whole number from 0 to 2^63 - 1.
std::optional<std::int64_t> AsCount(const boost::json::value& value);
/// Empty unless the value is a number.
std::optional<double> AsNumber(const boost::json::value& value);

}  // namespace holmes::weights
