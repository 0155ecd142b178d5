/// Chat templates: the part of the Jinja language that models' templates use, rendered as jinja2
/// does under transformers' set-up (sandboxed, trim_blocks, lstrip_blocks, loop controls, the
/// `generation` tag, its own tojson). Source: jinja2 3.1's documentation; docs/templates.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/value.h"

namespace holmes::text {

namespace ast {
struct Tree;
}

struct RenderOptions {
  std::size_t max_output_bytes = 16U << 20;  // also of every string made on the way
  std::int64_t max_steps = 10'000'000;       // statements, expressions and loop turns
  int max_call_depth = 64;                   // macros inside macros
  /// For strftime_now; unset = the current time.
  std::optional<std::time_t> now;
};

/// Immutable; Render is thread-safe.
class Template {
 public:
  static constexpr std::size_t kMaxSourceBytes = 1U << 20;

  /// Errors: kInvalidArgument with the line and the reason; kUnimplemented for a statement, filter
  /// or test that is not there, by name.
  static StatusOr<std::unique_ptr<const Template>> Parse(std::string_view source);
  ~Template();

  /// `variables` is a dict.
  /// Errors: kInvalidArgument (raise_exception: exactly its message; else with the line);
  /// kResourceExhausted over a limit, which it names.
  StatusOr<std::string> Render(const Value& variables, const RenderOptions& options) const;

 private:
  explicit Template(std::unique_ptr<const ast::Tree> tree);
  std::unique_ptr<const ast::Tree> tree_;
};

}  // namespace holmes::text
