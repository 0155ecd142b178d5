/// The JSON files beside the weights in a Hugging Face model folder.
#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/vocab_spec.h"

namespace holmes::weights {

inline constexpr std::uint64_t kMaxConfigBytes = 4u << 20;
inline constexpr std::uint64_t kMaxTokenizerBytes = 64u << 20;
inline constexpr std::uint64_t kMaxIndexBytes = 16u << 20;
inline constexpr std::uint64_t kMaxTemplateBytes = 4u << 20;

/// config.json, generation_config.json, tokenizer_config.json and chat_template.jinja as values.
/// Immutable once read; thread-safe.
class HfConfig {
 public:
  /// Only config.json has to exist. Errors: kNotFound, kDataLoss (malformed; names file and key),
  /// kUnimplemented (a quantised checkpoint, by its method).
  static StatusOr<HfConfig> Read(const std::string& folder);
  /// As Read, from the text of the files; empty text means that the file is absent. `folder` is
  /// used in messages only.
  static StatusOr<HfConfig> FromText(std::string_view folder,
                                     std::string_view config,
                                     std::string_view generation,
                                     std::string_view tokenizer,
                                     std::string_view jinja);

  const std::string& model_type() const { return model_type_; }
  const std::string& chat_template() const { return chat_template_; }
  /// Of config and generation_config; every id is at least 0 and, where config.json says
  /// vocab_size, below it.
  const std::vector<TokenId>& end_ids() const { return end_ids_; }
  /// A key of config.json or a path into it; behind "generation_config." one of
  /// generation_config.json. The two layouts of rotary keys answer for each other:
  /// "rope_theta" and "rope_scaling.x" also find "rope_parameters.rope_theta" and
  /// "rope_parameters.x". Null when absent or JSON null.
  const boost::json::value* Find(std::string_view key) const;

  /// Puts what tokenizer_config.json says (BOS and EOS by text, add_bos_token, add_eos_token) over
  /// what tokenizer.json said, and adds every end id.
  void Complete(text::VocabSpec& spec) const;

 private:
  Status ReadEndIds(const boost::json::value& root, std::string_view file_name);
  Status ReadChatTemplate(std::string_view file_name);

  boost::json::value config_;
  boost::json::value generation_;  // null when the folder has no generation_config.json
  boost::json::value tokenizer_;   // null when the folder has no tokenizer_config.json
  std::string model_type_;
  std::string chat_template_;
  std::vector<TokenId> end_ids_;
};

}  // namespace holmes::weights
