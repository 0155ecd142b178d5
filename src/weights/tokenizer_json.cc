#include "weights/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "text/byte_alphabet.h"
#include "weights/json_file.h"

namespace holmes::weights {
namespace {

namespace json = boost::json;
using text::PreTokenStep;
using text::VocabSpec;

constexpr std::int64_t kMaxTokens = 1 << 24;
/// Ids that no token has cost memory, so a file may name only so many beyond its tokens.
constexpr std::int64_t kMaxUnusedIds = 1 << 16;

Status Bad(std::string message) {
  return base::DataLossError("tokenizer.json: " + std::move(message));
}
Status Unsupported(std::string_view what, std::string_view name) {
  return base::UnimplementedError(
      fmt::format("tokenizer.json: {} '{}' is not supported; byte-level BPE pipelines are",
                  what,
                  name.substr(0, 80)));
}

const json::value* Member(const json::value& object, std::string_view key) {
  const json::value* value = object.is_object() ? object.get_object().if_contains(key) : nullptr;
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string TextOf(const json::value& object, std::string_view key) {
  const json::value* value = Member(object, key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

bool FlagOf(const json::value& object, std::string_view key) {
  const json::value* value = Member(object, key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

/// The steps of a possibly nested Sequence, in order; `list_key` holds its parts.
void Flatten(const json::value& step,
             std::string_view list_key,
             int depth,
             std::vector<const json::value*>& out) {
  const json::value* parts = Member(step, list_key);
  if (TextOf(step, "type") != "Sequence" || parts == nullptr || !parts->is_array() || depth > 8) {
    out.push_back(&step);
    return;
  }
  for (const json::value& part : parts->get_array()) Flatten(part, list_key, depth + 1, out);
}

class Reader {
 public:
  explicit Reader(const json::value& root) : root_(root) {}

  StatusOr<VocabSpec> Read() {
    HOLMES_RETURN_IF_ERROR(SetIdLimit());
    HOLMES_RETURN_IF_ERROR(ReadModel());
    HOLMES_RETURN_IF_ERROR(ReadAddedTokens());
    HOLMES_RETURN_IF_ERROR(ReadNormalizer());
    HOLMES_RETURN_IF_ERROR(ReadPreTokenizer());
    HOLMES_RETURN_IF_ERROR(ReadPostProcessor());
    HOLMES_RETURN_IF_ERROR(CheckDecoder());
    return std::move(spec_);
  }

 private:
  /// Ids may have gaps that added tokens fill, so the largest may exceed the count, but not wildly.
  Status SetIdLimit() {
    const json::value* model = Member(root_, "model");
    const json::value* vocab = model == nullptr ? nullptr : Member(*model, "vocab");
    if (vocab == nullptr || !vocab->is_object()) return Bad("'model.vocab' is not an object");
    const json::value* added = Member(root_, "added_tokens");
    const std::size_t num_tokens =
        vocab->get_object().size() +
        (added != nullptr && added->is_array() ? added->get_array().size() : 0);
    id_limit_ = std::min(kMaxTokens, static_cast<std::int64_t>(num_tokens) + kMaxUnusedIds);
    return OkStatus();
  }

  StatusOr<TokenId> Id(const json::value& value, std::string_view what) const {
    const auto id = AsCount(value);
    if (!id || *id >= id_limit_) {
      return Bad(fmt::format("{} has the id {}; 0 to {} are allowed",
                             what,
                             json::serialize(value).substr(0, 40),
                             id_limit_ - 1));
    }
    return static_cast<TokenId>(*id);
  }

  /// Makes room for `id`; what nobody fills stays an unused empty token.
  Status Place(TokenId id, std::string token) {
    const auto at = static_cast<std::size_t>(id);
    if (at >= spec_.tokens.size()) {
      spec_.tokens.resize(at + 1);
      filled_.resize(at + 1, false);
    }
    if (filled_[at] && spec_.tokens[at] != token)
      return Bad(fmt::format("the id {} belongs to '{}' and to '{}'", id, spec_.tokens[at], token));
    spec_.tokens[at] = std::move(token);
    filled_[at] = true;
    return OkStatus();
  }

  Status ReadModel() {
    const json::value* model = Member(root_, "model");
    if (model == nullptr) return Bad("'model' is missing");
    const std::string type = TextOf(*model, "type");
    if (type != "BPE" && !(type.empty() && Member(*model, "merges") != nullptr))
      return Unsupported("the model", type);
    if (FlagOf(*model, "byte_fallback")) return Unsupported("the model option", "byte_fallback");
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!TextOf(*model, affix).empty()) return Unsupported("the model option", affix);
    }
    const json::value* dropout = Member(*model, "dropout");
    if (dropout != nullptr && AsNumber(*dropout) != 0.0)
      return Unsupported("the model option", "dropout");
    spec_.ignore_merges = FlagOf(*model, "ignore_merges");
    const json::value* vocab = Member(*model, "vocab");  // an object: SetIdLimit has looked
    for (const auto& item : vocab->get_object()) {
      HOLMES_ASSIGN_OR_RETURN(const TokenId id,
                              Id(item.value(), fmt::format("'{}'", std::string_view(item.key()))));
      HOLMES_RETURN_IF_ERROR(Place(id, std::string(item.key())));
    }
    if (FlagOf(*model, "fuse_unk") && !HasAllBytes(vocab->get_object()))
      return Unsupported("without a token for every byte, the model option", "fuse_unk");
    if (const std::string unk = TextOf(*model, "unk_token"); !unk.empty()) {
      const json::value* id = vocab->get_object().if_contains(unk);
      if (id != nullptr) {
        HOLMES_ASSIGN_OR_RETURN(spec_.unk, Id(*id, "unk_token"));
      }
    }
    return ReadMerges(Member(*model, "merges"));
  }

  static bool HasAllBytes(const json::object& vocab) {
    const auto& bytes = text::ByteAlphabet();
    return std::all_of(
        bytes.begin(), bytes.end(), [&](const auto& token) { return vocab.contains(token); });
  }

  Status ReadMerges(const json::value* merges) {
    if (merges == nullptr || !merges->is_array()) return Bad("'model.merges' is not an array");
    spec_.merges.reserve(merges->get_array().size());
    for (const json::value& merge : merges->get_array()) {
      if (merge.is_string()) {
        const std::string_view line = merge.get_string();
        if (line.starts_with("#version")) continue;  // the first line of a merges.txt
        const std::size_t space = line.find(' ');
        if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
            line.find(' ', space + 1) != std::string_view::npos) {
          return Bad(
              fmt::format("merge {} is '{}'; two tokens with one space between them are expected",
                          spec_.merges.size(),
                          line));
        }
        spec_.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
      } else if (merge.is_array() && merge.get_array().size() == 2 &&
                 merge.get_array()[0].is_string() && merge.get_array()[1].is_string()) {
        spec_.merges.emplace_back(std::string(merge.get_array()[0].get_string()),
                                  std::string(merge.get_array()[1].get_string()));
      } else {
        return Bad(
            fmt::format("merge {} is neither a string nor a pair of strings", spec_.merges.size()));
      }
    }
    return OkStatus();
  }

  Status ReadAddedTokens() {
    const json::value* added = Member(root_, "added_tokens");
    if (added == nullptr) return OkStatus();
    if (!added->is_array()) return Bad("'added_tokens' is not an array");
    for (const json::value& token : added->get_array()) {
      const json::value* id = Member(token, "id");
      text::AddedToken out;
      out.text = TextOf(token, "content");
      if (id == nullptr || out.text.empty()) return Bad("an added token lacks 'id' or 'content'");
      HOLMES_ASSIGN_OR_RETURN(out.id, Id(*id, "an added token"));
      out.special = FlagOf(token, "special");
      out.lstrip = FlagOf(token, "lstrip");
      out.rstrip = FlagOf(token, "rstrip");
      out.single_word = FlagOf(token, "single_word");
      HOLMES_RETURN_IF_ERROR(Place(out.id, out.text));
      spec_.added.push_back(std::move(out));
    }
    return OkStatus();
  }

  Status ReadNormalizer() {
    const json::value* normalizer = Member(root_, "normalizer");
    if (normalizer == nullptr) return OkStatus();
    std::vector<const json::value*> steps;
    Flatten(*normalizer, "normalizers", 0, steps);
    for (const json::value* step : steps) {
      const std::string type = TextOf(*step, "type");
      if (type != "NFC" && type != "NFKC") return Unsupported("the normalizer", type);
      spec_.normalization = type;
    }
    return OkStatus();
  }

  Status ReadPreTokenizer() {
    const json::value* pre = Member(root_, "pre_tokenizer");
    if (pre == nullptr) return Unsupported("the pre_tokenizer", "null");
    std::vector<const json::value*> steps;
    Flatten(*pre, "pretokenizers", 0, steps);
    bool byte_level = false;
    for (const json::value* step : steps) {
      const std::string type = TextOf(*step, "type");
      // Later steps would see the byte alphabet, not the text.
      if (byte_level) return Unsupported("a pre_tokenizer after ByteLevel,", type);
      if (type == "ByteLevel") {
        byte_level = true;
        spec_.add_space_prefix = FlagOf(*step, "add_prefix_space");
        if (spec_.add_space_prefix && step != steps.front())
          return Unsupported("behind another pre_tokenizer, ByteLevel's", "add_prefix_space");
        const json::value* regex = Member(*step, "use_regex");
        if (regex == nullptr || !regex->is_bool() || regex->get_bool())
          spec_.pre_tokenizer.push_back({PreTokenStep::Kind::kByteLevel, ""});
      } else if (type == "Split") {
        HOLMES_RETURN_IF_ERROR(ReadSplit(*step));
      } else if (type == "Digits" && FlagOf(*step, "individual_digits")) {
        spec_.pre_tokenizer.push_back({PreTokenStep::Kind::kDigitsIndividual, ""});
      } else {
        return Unsupported("the pre_tokenizer", type);
      }
    }
    return byte_level ? OkStatus() : Unsupported("a pre_tokenizer without", "ByteLevel");
  }

  Status ReadSplit(const json::value& step) {
    const std::string behavior = TextOf(step, "behavior");
    if (behavior != "Isolated" && behavior != "Removed")
      return Unsupported("the split behavior", behavior);
    if (FlagOf(step, "invert")) return Unsupported("the split option", "invert");
    const json::value* pattern = Member(step, "pattern");
    if (pattern == nullptr) return Bad("a split lacks its 'pattern'");
    std::string regex = TextOf(*pattern, "Regex");
    if (regex.empty()) {
      for (const char c : TextOf(*pattern, "String")) {
        if (std::string_view(R"(\^$.|?*+()[]{})").find(c) != std::string_view::npos)
          regex.push_back('\\');
        regex.push_back(c);
      }
    }
    if (regex.empty()) return Bad("a split's 'pattern' is empty");
    spec_.pre_tokenizer.push_back({behavior == "Isolated" ? PreTokenStep::Kind::kRegexIsolated
                                                          : PreTokenStep::Kind::kRegexRemoved,
                                   std::move(regex)});
    return OkStatus();
  }

  Status ReadPostProcessor() {
    const json::value* post = Member(root_, "post_processor");
    if (post == nullptr) return OkStatus();
    std::vector<const json::value*> steps;
    Flatten(*post, "processors", 0, steps);
    for (const json::value* step : steps) {
      const std::string type = TextOf(*step, "type");
      if (type == "ByteLevel") continue;  // moves offsets only
      if (type != "TemplateProcessing") return Unsupported("the post_processor", type);
      HOLMES_RETURN_IF_ERROR(ReadTemplate(*step));
    }
    return OkStatus();
  }

  /// [BOS?] text [EOS?]
  Status ReadTemplate(const json::value& step) {
    const json::value* single = Member(step, "single");
    if (single == nullptr || !single->is_array())
      return Bad("the template post_processor lacks 'single'");
    bool after_text = false;
    for (const json::value& part : single->get_array()) {
      const json::value* token = Member(part, "SpecialToken");
      if (token == nullptr) {
        after_text = true;
        continue;
      }
      const std::string name = TextOf(*token, "id");
      const json::value* tokens = Member(step, "special_tokens");
      const json::value* entry = tokens != nullptr ? Member(*tokens, name) : nullptr;
      const json::value* ids = entry != nullptr ? Member(*entry, "ids") : nullptr;
      if (ids == nullptr || !ids->is_array() || ids->get_array().size() != 1)
        return Bad(fmt::format("the post_processor's token '{}' does not have one id", name));
      HOLMES_ASSIGN_OR_RETURN(const TokenId id, Id(ids->get_array()[0], "the post_processor"));
      (after_text ? spec_.eos : spec_.bos) = id;
      (after_text ? spec_.add_eos : spec_.add_bos) = true;
    }
    return OkStatus();
  }

  /// Decoding is the byte alphabet read backwards, whether the file says so or nothing.
  Status CheckDecoder() const {
    const json::value* decoder = Member(root_, "decoder");
    if (decoder == nullptr) return OkStatus();
    std::vector<const json::value*> steps;
    Flatten(*decoder, "decoders", 0, steps);
    for (const json::value* step : steps) {
      const std::string type = TextOf(*step, "type");
      if (type != "ByteLevel") return Unsupported("the decoder", type);
    }
    return OkStatus();
  }

  const json::value& root_;
  std::int64_t id_limit_ = 0;
  VocabSpec spec_;
  std::vector<bool> filled_;
};

}  // namespace

StatusOr<VocabSpec> ReadTokenizerJson(std::string_view text) {
  HOLMES_ASSIGN_OR_RETURN(const json::value root, ParseJson(text, "tokenizer.json"));
  if (!root.is_object()) return Bad("the document is not an object");
  return Reader(root).Read();
}

}  // namespace holmes::weights
