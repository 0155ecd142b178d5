#include "weights/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <utility>

#include "base/log.h"
#include "weights/end_tokens.h"
#include "weights/json_file.h"
#include "weights/printable.h"

namespace holmes::weights {
namespace {

namespace json = boost::json;

Status Malformed(std::string_view file_name, std::string_view what) {
  return base::DataLossError(
      fmt::format("{}: {}; correct the file or download it again", file_name, what));
}

StatusOr<json::value> ParseObject(std::string_view text, std::string_view file_name) {
  HOLMES_ASSIGN_OR_RETURN(json::value value, ParseJson(text, file_name));
  if (!value.is_object()) return Malformed(file_name, "a JSON object is expected");
  return value;
}

/// Empty text when the file is absent.
StatusOr<std::string> ReadOptional(const std::string& path, std::uint64_t max_bytes) {
  StatusOr<std::string> text = ReadSmallFile(path, max_bytes);
  if (!text.ok() && text.status().code() == StatusCode::kNotFound) return std::string();
  return text;
}

/// A token as tokenizer_config.json names it: a string, or an object with "content".
std::optional<std::string_view> TokenText(const json::value& root, std::string_view key) {
  const json::value* value = FindPath(root, key);
  if (value != nullptr && value->is_object()) value = value->get_object().if_contains("content");
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string_view(value->get_string());
}

std::optional<bool> Flag(const json::value& root, std::string_view key) {
  const json::value* const value = FindPath(root, key);
  if (value == nullptr || !value->is_bool()) return std::nullopt;
  return value->get_bool();
}

std::optional<TokenId> FindToken(const text::VocabSpec& spec, std::string_view token_text) {
  for (const text::AddedToken& token : spec.added) {
    if (token.text == token_text) return token.id;
  }
  const auto found = std::find(spec.tokens.begin(), spec.tokens.end(), token_text);
  if (found == spec.tokens.end()) return std::nullopt;
  return static_cast<TokenId>(found - spec.tokens.begin());
}

}  // namespace

StatusOr<HfConfig> HfConfig::Read(const std::string& folder) {
  HOLMES_ASSIGN_OR_RETURN(const std::string config,
                          ReadSmallFile(folder + "/config.json", kMaxConfigBytes));
  HOLMES_ASSIGN_OR_RETURN(const std::string generation,
                          ReadOptional(folder + "/generation_config.json", kMaxConfigBytes));
  HOLMES_ASSIGN_OR_RETURN(const std::string tokenizer,
                          ReadOptional(folder + "/tokenizer_config.json", kMaxIndexBytes));
  HOLMES_ASSIGN_OR_RETURN(const std::string jinja,
                          ReadOptional(folder + "/chat_template.jinja", kMaxTemplateBytes));
  return FromText(folder, config, generation, tokenizer, jinja);
}

StatusOr<HfConfig> HfConfig::FromText(std::string_view folder,
                                      std::string_view config,
                                      std::string_view generation,
                                      std::string_view tokenizer,
                                      std::string_view jinja) {
  HfConfig result;
  const std::string config_name = fmt::format("{}/config.json", folder);
  HOLMES_ASSIGN_OR_RETURN(result.config_, ParseObject(config, config_name));
  const json::value* const model_type = result.Find("model_type");
  if (model_type == nullptr || !model_type->is_string() || model_type->get_string().empty()) {
    return Malformed(config_name, "model_type is missing or not a string");
  }
  result.model_type_ = std::string(std::string_view(model_type->get_string()));
  if (const json::value* const quantization = result.Find("quantization_config")) {
    const json::value* const method = FindPath(*quantization, "quant_method");
    const std::string name = method != nullptr && method->is_string()
                                 ? Quoted(std::string_view(method->get_string()))
                                 : "unnamed";
    return base::UnimplementedError(
        fmt::format("{}: quantization_config: the method {} is not supported; use the unquantised "
                    "checkpoint or a .gguf file",
                    config_name,
                    name));
  }
  HOLMES_RETURN_IF_ERROR(result.ReadEndIds(result.config_, config_name));
  if (!generation.empty()) {
    const std::string name = fmt::format("{}/generation_config.json", folder);
    HOLMES_ASSIGN_OR_RETURN(result.generation_, ParseObject(generation, name));
    HOLMES_RETURN_IF_ERROR(result.ReadEndIds(result.generation_, name));
  }
  result.end_ids_ = SortedUnique(std::move(result.end_ids_));
  if (!tokenizer.empty()) {
    const std::string name = fmt::format("{}/tokenizer_config.json", folder);
    HOLMES_ASSIGN_OR_RETURN(result.tokenizer_, ParseObject(tokenizer, name));
    HOLMES_RETURN_IF_ERROR(result.ReadChatTemplate(name));
  }
  if (!jinja.empty())
    result.chat_template_ = std::string(jinja);  // the file is the newer place and wins
  return result;
}

Status HfConfig::ReadEndIds(const json::value& root, std::string_view file_name) {
  const json::value* const value = FindPath(root, "eos_token_id");
  if (value == nullptr || value->is_null()) return OkStatus();
  const json::array single = {*value};
  const json::array& ids = value->is_array() ? value->get_array() : single;
  const json::value* const vocab = Find("vocab_size");
  const std::int64_t limit = vocab == nullptr
                                 ? std::numeric_limits<TokenId>::max()
                                 : AsCount(*vocab).value_or(std::numeric_limits<TokenId>::max());
  std::size_t left_out = 0;  // can never be sampled; some published models name such ids
  for (const json::value& item : ids) {
    const std::optional<std::int64_t> id = AsCount(item);
    if (!id || *id > std::numeric_limits<TokenId>::max()) {
      return Malformed(file_name, "eos_token_id is neither a token id nor a list of them");
    }
    if (*id < limit) {
      end_ids_.push_back(static_cast<TokenId>(*id));
    } else {
      ++left_out;
    }
  }
  if (left_out > 0) {
    base::LogWarning(
        "{}: {} ids of eos_token_id are outside the vocabulary of {} tokens and are left out",
        file_name,
        left_out,
        limit);
  }
  return OkStatus();
}

Status HfConfig::ReadChatTemplate(std::string_view file_name) {
  const json::value* const value = FindPath(tokenizer_, "chat_template");
  if (value == nullptr || value->is_null()) return OkStatus();
  if (value->is_string()) {
    chat_template_ = std::string(std::string_view(value->get_string()));
    return OkStatus();
  }
  const json::array* const named = value->if_array();
  if (named == nullptr) return Malformed(file_name, "chat_template is neither a string nor a list");
  for (const json::value& item : *named) {
    const json::value* const name = FindPath(item, "name");
    const json::value* const source = FindPath(item, "template");
    if (name == nullptr || source == nullptr || !name->is_string() || !source->is_string()) {
      return Malformed(file_name, "an entry of chat_template lacks its name or template");
    }
    if (name->get_string() == "default")
      chat_template_ = std::string(std::string_view(source->get_string()));
  }
  return OkStatus();
}

const json::value* HfConfig::Find(std::string_view key) const {
  constexpr std::string_view kGeneration = "generation_config.";
  const bool generation = key.starts_with(kGeneration);
  const json::value* value =
      generation ? FindPath(generation_, key.substr(kGeneration.size())) : FindPath(config_, key);
  constexpr std::string_view kScaling = "rope_scaling.";
  if (value == nullptr && key == "rope_theta")
    value = FindPath(config_, "rope_parameters.rope_theta");
  if (value == nullptr && key.starts_with(kScaling))
    value = FindPath(config_, fmt::format("rope_parameters.{}", key.substr(kScaling.size())));
  return value == nullptr || value->is_null() ? nullptr : value;
}

void HfConfig::Complete(text::VocabSpec& spec) const {
  if (const auto token = TokenText(tokenizer_, "bos_token")) {
    if (const auto id = FindToken(spec, *token)) spec.bos = id;
  }
  if (const auto token = TokenText(tokenizer_, "eos_token")) {
    if (const auto id = FindToken(spec, *token)) spec.eos = id;
  }
  if (const auto token = TokenText(tokenizer_, "pad_token")) {
    if (const auto id = FindToken(spec, *token)) spec.pad = id;
  }
  if (const auto add = Flag(tokenizer_, "add_bos_token")) spec.add_bos = *add;
  if (const auto add = Flag(tokenizer_, "add_eos_token")) spec.add_eos = *add;
  spec.add_bos = spec.add_bos && spec.bos.has_value();
  spec.add_eos = spec.add_eos && spec.eos.has_value();
  std::vector<TokenId>& ends = spec.end_of_generation;
  ends.insert(ends.end(), end_ids_.begin(), end_ids_.end());
  if (spec.eos) ends.push_back(*spec.eos);
  for (const text::AddedToken& token : spec.added) {
    if (token.special && IsWellKnownEndText(token.text)) ends.push_back(token.id);
  }
  ends = SortedUnique(std::move(ends));
}

}  // namespace holmes::weights
