/// The JSON files of a model folder: the input is cut at zero bytes into config, generation_config,
/// tokenizer_config and template.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/log.h"
#include "weights/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holmes;
  base::SetLogSink([](base::LogLevel, std::string_view) {});
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string_view, 4> parts;
  for (std::string_view& part : parts) {
    const std::size_t end = rest.find('\0');
    part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  const auto config = weights::HfConfig::FromText("fuzz", parts[0], parts[1], parts[2], parts[3]);
  if (!config.ok()) return 0;
  for (const TokenId id : config->end_ids()) HOLMES_CHECK(id >= 0);
  for (const std::string_view key : {"rope_theta", "rope_scaling.factor", "a.b.c", ""})
    static_cast<void>(config->Find(key));
  text::VocabSpec spec;
  spec.tokens = {"<s>", "a", "</s>"};
  spec.added.push_back({.id = 2, .text = "</s>", .special = true});
  config->Complete(spec);
  HOLMES_CHECK(!spec.add_bos || spec.bos.has_value());
  return 0;
}
