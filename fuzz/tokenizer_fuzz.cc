// Byte-level BPE with a small vocabulary made from the input, on text from the input: merging
// equals a naive merger, decoding gives the text back, detokenizing in pieces equals the whole.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/detokenizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace {

using namespace holmes;
using namespace holmes::text;

class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  std::size_t Number() {
    if (bytes_.empty()) return 0;
    const auto out = static_cast<unsigned char>(bytes_[0]);
    bytes_.remove_prefix(1);
    return out;
  }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

VocabSpec MakeSpec(Input& input) {
  VocabSpec spec;
  spec.tokens.assign(ByteAlphabet().begin(), ByteAlphabet().end());
  for (std::size_t i = input.Number() % 24; i > 0; --i) {
    const std::string left = spec.tokens[(input.Number() << 1) % spec.tokens.size()];
    const std::string right =
        spec.tokens[spec.tokens.size() - 1 - input.Number() % spec.tokens.size()];
    spec.merges.emplace_back(left, right);
    bool is_new = true;
    for (const std::string& token : spec.tokens) is_new = is_new && token != left + right;
    if (is_new) spec.tokens.push_back(left + right);
  }
  return spec;
}

/// Leftmost pair of the lowest rank, again and again; symbols in the byte alphabet.
std::vector<std::string> NaiveMerge(const VocabSpec& spec, std::string_view text) {
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (std::size_t i = 0; i < spec.merges.size(); ++i) ranks[spec.merges[i]] = i;
  std::vector<std::string> symbols;
  for (const char c : text) symbols.push_back(ByteAlphabet()[static_cast<unsigned char>(c)]);
  while (true) {
    std::size_t rank = spec.merges.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found != ranks.end() && found->second < rank) rank = found->second, at = i;
    }
    if (rank == spec.merges.size()) return symbols;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckMerging(const VocabSpec& spec, std::string_view bytes) {
  const auto tokenizer = Tokenizer::Create(spec);
  Require(tokenizer.ok());
  const std::string text = ReplaceInvalidUtf8(bytes.substr(0, 300));
  const std::vector<TokenId> ids = (*tokenizer)->Encode(text, {});
  const std::vector<std::string> want = NaiveMerge(spec, text);
  Require(ids.size() == want.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    Require(spec.tokens[static_cast<std::size_t>(ids[i])] == want[i]);
}

void CheckWholePipeline(VocabSpec spec, std::size_t choice, std::string_view bytes) {
  static constexpr const char* kNames[] = {"gpt-2",
                                           "smollm",
                                           "llama-bpe",
                                           "qwen2",
                                           "gpt-4o",
                                           "deepseek-llm",
                                           "deepseek-coder",
                                           "deepseek-v3"};
  const auto named = PreTokenizerByName(kNames[choice % 8]);
  Require(named.ok());
  spec.pre_tokenizer = named->steps;
  spec.ignore_merges = named->ignore_merges;
  spec.added.push_back(
      {.id = static_cast<TokenId>(spec.tokens.size()), .text = "<|x|>", .special = true});
  spec.tokens.push_back("<|x|>");
  const auto tokenizer = Tokenizer::Create(spec);
  Require(tokenizer.ok());
  const std::vector<TokenId> ids = (*tokenizer)->Encode(bytes, {.parse_special = true});
  Require((*tokenizer)->DecodeBytes(ids, true) == ReplaceInvalidUtf8(bytes));
  // Any ids, here those of the bytes themselves, come out in whole characters.
  Detokenizer detokenizer(**tokenizer, false);
  std::string out;
  std::vector<TokenId> raw;
  for (const char c : bytes) {
    raw.push_back(static_cast<unsigned char>(c) % (*tokenizer)->vocab_size());
    const std::string piece = detokenizer.Push(raw.back());
    Require(IsValidUtf8(piece));
    out += piece;
  }
  out += detokenizer.Flush();
  Require(out == ReplaceInvalidUtf8((*tokenizer)->DecodeBytes(raw, true)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({reinterpret_cast<const char*>(data), size});
  const std::size_t choice = input.Number();
  const VocabSpec spec = MakeSpec(input);
  CheckMerging(spec, input.rest());
  CheckWholePipeline(spec, choice, input.rest());
  return 0;
}
