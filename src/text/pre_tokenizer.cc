// The pre-tokenizers behind GGUF's tokenizer.ggml.pre. Patterns are those of the models'
// tokenizer.json files.
#include "text/pre_tokenizer.h"

#include <fmt/format.h>

#include <initializer_list>
#include <map>
#include <set>
#include <string>

#include "base/edit_distance.h"

namespace holmes::text {
namespace {

using Kind = PreTokenStep::Kind;
using Table = std::map<std::string, NamedPreTokenizer, std::less<>>;

constexpr const char* kThreeDigits =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kOneDigit =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// Marks stay with their letters.
constexpr const char* kOneDigitMarks =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// Words end where small letters do: "camelCase" is two.
constexpr const char* kCaseWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kCaseWordsContracted =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepSeekV3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kCjk = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
/// Letters with case as of the vocabulary's making, one by one.
constexpr const char* kDeepSeekLlmLetters =
    R"(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-)"
    R"(\x{293}\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386})"
    R"(\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f})"
    R"(\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba})"
    R"(\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-)"
    R"(\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59})"
    R"(\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-)"
    R"(\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2})"
    R"(-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d})"
    R"(\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f})"
    R"(\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-)"
    R"(\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-)"
    R"(\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21})"
    R"(-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb})"
    R"(\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)";
constexpr const char* kDeepSeekLlmSigns =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";

std::vector<PreTokenStep> Patterns(std::initializer_list<const char*> patterns) {
  std::vector<PreTokenStep> steps;
  for (const char* pattern : patterns) steps.push_back({Kind::kRegexIsolated, pattern});
  return steps;
}

void Add(Table& table,
         std::initializer_list<const char*> names,
         const NamedPreTokenizer& pre_tokenizer) {
  for (const char* name : names) table.emplace(name, pre_tokenizer);
}

Table MakeTable() {
  const PreTokenStep digits{Kind::kDigitsIndividual, ""};
  const PreTokenStep words{Kind::kByteLevel, ""};
  Table table;
  Add(table, {"default", "gpt-2", "phi-2"}, {{words}, "", false});
  Add(table, {"mpt", "olmo"}, {{words}, "NFC", false});
  Add(table, {"smollm", "starcoder", "refact", "codeshell"}, {{digits, words}, "", false});
  Add(table, {"command-r"}, {{digits, words}, "NFC", false});
  Add(table,
      {"llama-bpe", "llama3", "llama-v3", "falcon3", "lfm2", "glm4"},
      {Patterns({kThreeDigits}), "", true});
  Add(table, {"dbrx", "smaug-bpe", "chatglm-bpe"}, {Patterns({kThreeDigits}), "", false});
  Add(table,
      {"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez"},
      {Patterns({kOneDigit}), "NFC", false});
  Add(table, {"qwen35"}, {Patterns({kOneDigitMarks}), "NFC", false});
  Add(table, {"seed-coder"}, {Patterns({kSeedCoder}), "", false});
  Add(table, {"tekken"}, {Patterns({kCaseWords}), "", true});
  Add(table, {"gpt-4o", "llama4"}, {Patterns({kCaseWordsContracted}), "", false});
  Add(table,
      {"deepseek-v3", "hunyuan-dense"},
      {Patterns({R"(\p{N}{1,3})",
                 R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)",
                 kDeepSeekV3Words}),
       "",
       false});
  NamedPreTokenizer coder{Patterns({R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjk}), "", false};
  coder.steps.push_back(digits);
  Add(table, {"deepseek-coder"}, coder);
  NamedPreTokenizer llm{
      Patterns({R"([\r\n])", kDeepSeekLlmLetters, kDeepSeekLlmSigns, R"(\s+$)", kCjk}), "", false};
  llm.steps.push_back(digits);
  Add(table, {"deepseek-llm"}, llm);
  return table;
}

const Table& Named() {
  static const Table table = MakeTable();
  return table;
}

}  // namespace

StatusOr<NamedPreTokenizer> PreTokenizerByName(std::string_view gguf_pre) {
  const auto found = Named().find(gguf_pre);
  if (found != Named().end()) return found->second;
  std::set<std::string> names;
  for (const auto& [name, steps] : Named()) names.insert(name);
  return base::UnimplementedError(
      fmt::format("pre-tokenizer '{}' is not supported; the nearest supported one is '{}'",
                  gguf_pre.substr(0, 64),
                  base::Nearest(gguf_pre.substr(0, 64), names)));
}

}  // namespace holmes::text
