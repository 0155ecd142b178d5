/// Chat templates from arbitrary bytes: parse, then render with tight limits.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "text/template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holmes::text;
  const auto parsed = Template::Parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!parsed.ok()) return 0;
  const Value variables =
      Dict{{"messages",
            List{Dict{{"role", "user"}, {"content", "h\xC3\xA9llo"}},
                 Dict{{"role", "assistant"}, {"content", Value()}}}},
           {"tools", List{Dict{{"name", "f"}, {"parameters", Dict{{"x", 1.5}}}}}},
           {"add_generation_prompt", true},
           {"n", 7},
           {"s", "a,b"}};
  const RenderOptions options = {
      .max_output_bytes = 4096, .max_steps = 5000, .max_call_depth = 16, .now = 0};
  const auto text = (*parsed)->Render(variables, options);
  if (text.ok()) HOLMES_CHECK(text->size() <= options.max_output_bytes);
  return 0;
}
