/// Filters, tests, methods and operators of the template language. Internal to text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/template.h"
#include "text/value.h"

namespace holmes::text {

/// What one rendering has used up of its limits.
class RenderBudget {
 public:
  explicit RenderBudget(const RenderOptions& options)
      : options_(options), steps_left_(options.max_steps) {}
  /// What the variables weigh comes on top of the limit for values.
  void AllowFor(const Value& variables) { allowed_ = variables.weight(); }
  const RenderOptions& options() const { return options_; }
  /// Errors: kResourceExhausted when the steps are used up.
  Status Step() { return Spend(1); }
  Status Spend(std::int64_t steps);
  /// Steps for work that goes through all of a string or container once.
  Status SpendOn(const Value& value);
  /// The same for work that goes through what a container holds, too. Errors as CheckValue.
  Status SpendDeeply(const Value& value);
  /// Errors: kResourceExhausted for a value that is nested too deep or too large.
  Status CheckValue(const Value& value) const;
  /// Errors: kResourceExhausted for a string or container that is too large.
  Status CheckSize(std::size_t bytes) const;

 private:
  const RenderOptions& options_;
  std::int64_t steps_left_;
  std::uint64_t allowed_ = 0;
};

/// Errors of all below: kInvalidArgument with Python's reason, without the line.
StatusOr<Value> ApplyFilter(std::string_view name,
                            const Value& input,
                            const Arguments& arguments,
                            RenderBudget& budget);
StatusOr<bool> ApplyTest(std::string_view name, const Value& input, const Arguments& arguments);
/// Empty when the value's type has no such method.
StatusOr<std::optional<Value>> CallMethod(const Value& object,
                                          std::string_view name,
                                          const Arguments& arguments,
                                          RenderBudget& budget);
StatusOr<Value> ApplyBinary(std::string_view op,
                            const Value& left,
                            const Value& right,
                            RenderBudget& budget);
/// Levels of containers in containers: bounds the stack of what walks through values.
inline constexpr int kMaxValueDepth = 200;

StatusOr<bool> ApplyCompare(std::string_view op, const Value& left, const Value& right);
StatusOr<Value> GetItem(const Value& object, const Value& key);
StatusOr<Value> GetSlice(const Value& object,
                         const Value& start,
                         const Value& stop,
                         const Value& step);
/// What iterating gives: elements, characters or keys.
StatusOr<List> Iterate(const Value& value);
StatusOr<std::int64_t> Length(const Value& value);

/// Changes the key's value or appends it.
void SetKey(Dict& dict, const std::string& key, Value value);

/// The argument at `index` or by name; null when not given.
const Value* FindArgument(const Arguments& arguments, std::size_t index, std::string_view name);

}  // namespace holmes::text
