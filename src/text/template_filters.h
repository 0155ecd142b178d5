/// Filters of text, and how filters read their arguments. Internal to text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/template_builtins.h"

namespace holmes::text {

/// The fallback where the argument is not there or of another type.
std::int64_t IntegerArgument(const Arguments& arguments,
                             std::size_t index,
                             std::string_view name,
                             std::int64_t fallback);

std::string TextArgument(const Arguments& arguments,
                         std::size_t index,
                         std::string_view name,
                         std::string_view fallback);

bool FlagArgument(const Arguments& arguments, std::size_t index, std::string_view name);

StatusOr<Value> Indent(const Value& input, const Arguments& arguments, RenderBudget& budget);
StatusOr<Value> Escape(const Value& input, const Arguments& arguments, RenderBudget& budget);
StatusOr<Value> Trim(const Value& input, const Arguments& arguments, RenderBudget& budget);
StatusOr<Value> Replace(const Value& input, const Arguments& arguments, RenderBudget& budget);
StatusOr<Value> FormatFilter(const Value& input, const Arguments& arguments, RenderBudget& budget);
StatusOr<Value> Center(const Value& input, const Arguments& arguments, RenderBudget& budget);
StatusOr<Value> Truncate(const Value& input, const Arguments& arguments, RenderBudget& budget);
StatusOr<Value> WordCount(const Value& input, const Arguments& arguments, RenderBudget& budget);
StatusOr<Value> UrlEncode(const Value& input, const Arguments& arguments, RenderBudget& budget);

}  // namespace holmes::text
