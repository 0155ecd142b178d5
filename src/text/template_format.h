/// Python's string formatting: '...' % values and '...'.format(...). Internal to text.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/template_builtins.h"

namespace holmes::text {

/// Errors: kInvalidArgument for a format or a value that Python refuses; kUnimplemented for locale
/// formats, attributes and a float's precision without a type; kResourceExhausted over the limits.
StatusOr<std::string> FormatPercent(std::string_view format,
                                    const Value& values,
                                    RenderBudget& budget);
StatusOr<std::string> FormatBraces(std::string_view format,
                                   const Arguments& arguments,
                                   RenderBudget& budget);

}  // namespace holmes::text
