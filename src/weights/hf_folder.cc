#include "weights/hf_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "weights/end_tokens.h"
#include "weights/hf_config.h"
#include "weights/json_file.h"
#include "weights/mapped_file.h"
#include "weights/printable.h"
#include "weights/safetensors.h"
#include "weights/source_index.h"
#include "weights/tokenizer_json.h"

namespace holmes::weights {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kMaxShards = 4096;

class HfFolder final : public ModelSource {
 public:
  HfFolder(std::string name,
           HfConfig config,
           StatusOr<text::VocabSpec> vocab,
           std::vector<MappedFile> maps,
           TensorIndex index)
      : name_(std::move(name)),
        config_(std::move(config)),
        vocab_(std::move(vocab)),
        maps_(std::move(maps)),
        index_(std::move(index)) {}

  Format format() const override { return Format::kSafetensors; }
  std::string_view architecture() const override { return config_.model_type(); }
  std::string_view name() const override { return name_; }
  std::span<const TensorRef> tensors() const override { return index_.tensors(); }
  const TensorRef* Find(std::string_view tensor_name) const override {
    return index_.Find(tensor_name);
  }

  std::optional<double> Number(std::string_view key) const override {
    const json::value* const value = config_.Find(key);
    return value == nullptr ? std::nullopt : AsNumber(*value);
  }
  std::optional<bool> Bool(std::string_view key) const override {
    const json::value* const value = config_.Find(key);
    if (value == nullptr || !value->is_bool()) return std::nullopt;
    return value->get_bool();
  }
  std::optional<std::string> String(std::string_view key) const override {
    const json::value* const value = config_.Find(key);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return std::string(std::string_view(value->get_string()));
  }
  std::optional<std::vector<double>> Numbers(std::string_view key) const override {
    const json::value* const value = config_.Find(key);
    if (value == nullptr || !value->is_array()) return std::nullopt;
    std::vector<double> numbers;
    for (const json::value& item : value->get_array()) {
      const std::optional<double> number = AsNumber(item);
      if (!number) return std::nullopt;
      numbers.push_back(*number);
    }
    return numbers;
  }

  StatusOr<text::VocabSpec> Vocab() const override { return vocab_; }
  std::string_view chat_template() const override { return config_.chat_template(); }
  std::vector<TokenId> EndOfGeneration() const override {
    return vocab_.ok() ? vocab_->end_of_generation : config_.end_ids();
  }

 private:
  std::string name_;
  HfConfig config_;
  StatusOr<text::VocabSpec> vocab_;  // read once, at Open: the end ids need it
  std::vector<MappedFile> maps_;
  TensorIndex index_;  // borrows maps_
};

/// Files of weights, and for a sharded model which of them holds each tensor.
struct ShardPlan {
  std::vector<std::string> files;
  std::map<std::string, std::string, std::less<>> file_of_tensor;  // empty without an index
};

/// A name from the index must stay inside the folder.
bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find('/') == std::string_view::npos && name.find('\\') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

StatusOr<ShardPlan> ReadIndex(const std::string& folder, const std::string& index_path) {
  HOLMES_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(index_path, kMaxIndexBytes));
  HOLMES_ASSIGN_OR_RETURN(const json::value root, ParseJson(text, index_path));
  const json::value* const value = FindPath(root, "weight_map");
  const json::object* const weight_map = value == nullptr ? nullptr : value->if_object();
  if (weight_map == nullptr || weight_map->empty()) {
    return base::DataLossError(
        fmt::format("{}: weight_map is missing or empty; download it again", index_path));
  }
  ShardPlan plan;
  std::set<std::string> files;
  for (const json::key_value_pair& item : *weight_map) {
    const json::string* const file = item.value().if_string();
    if (file == nullptr || !IsPlainFileName(*file) ||
        !std::string_view(*file).ends_with(".safetensors")) {
      return base::DataLossError(fmt::format(
          "{}: the file of tensor {} is {}, the name of a .safetensors file in {} is expected",
          index_path,
          Quoted(std::string_view(item.key())),
          file == nullptr ? "not a string" : Quoted(std::string_view(*file)),
          folder));
    }
    plan.file_of_tensor.emplace(std::string_view(item.key()), std::string_view(*file));
    files.emplace(std::string_view(*file));
  }
  if (files.size() > kMaxShards) {
    return base::DataLossError(fmt::format(
        "{}: {} files are named, at most {} are allowed", index_path, files.size(), kMaxShards));
  }
  plan.files.assign(files.begin(), files.end());
  return plan;
}

StatusOr<ShardPlan> PlanShards(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder + "/model.safetensors", error))
    return ShardPlan{.files = {"model.safetensors"}, .file_of_tensor = {}};
  const std::string index_path = folder + "/model.safetensors.index.json";
  if (fs::exists(index_path, error)) return ReadIndex(folder, index_path);
  std::vector<std::string> found;
  bool has_pickle = false;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->path().extension() == ".safetensors") found.push_back(at->path().filename().string());
    has_pickle |= at->path().extension() == ".bin" || at->path().extension() == ".pth";
  }
  if (error) return base::ErrnoError(error.value(), fmt::format("list {}", folder));
  if (found.size() == 1) return ShardPlan{.files = std::move(found), .file_of_tensor = {}};
  if (found.size() > 1) {
    return base::NotFoundError(
        fmt::format("{}: {} .safetensors files but no model.safetensors.index.json that joins "
                    "them; download it",
                    folder,
                    found.size()));
  }
  if (has_pickle) {
    return base::UnimplementedError(
        fmt::format("{}: only PyTorch weights (.bin, .pth) are there, which are not read; use the "
                    "safetensors of this model",
                    folder));
  }
  return base::NotFoundError(
      fmt::format("{}: config.json is there but no *.safetensors; download the weights", folder));
}

struct LoadedShards {
  std::vector<MappedFile> maps;
  std::vector<TensorRef> tensors;
};

StatusOr<LoadedShards> LoadShards(const std::string& folder, const ShardPlan& plan) {
  LoadedShards loaded;
  std::map<std::string, std::string, std::less<>>
      seen;  // tensor to file, also of those that are no weights
  for (const std::string& file : plan.files) {
    const std::string path = fmt::format("{}/{}", folder, file);
    StatusOr<MappedFile> map = MappedFile::Open(path);
    if (!map.ok()) {
      return map.status().code() == StatusCode::kNotFound
                 ? base::NotFoundError(fmt::format(
                       "{}: this part of the model is missing; download it again", path))
                 : map.status();
    }
    HOLMES_ASSIGN_OR_RETURN(std::vector<SafetensorsEntry> entries,
                            ParseSafetensors(map->bytes(), path));
    for (SafetensorsEntry& entry : entries) {
      const auto [at, is_new] = seen.emplace(entry.name, file);
      if (!is_new)
        return base::DataLossError(
            fmt::format("{}: tensor {} is also in {}; download the model again",
                        path,
                        Quoted(entry.name),
                        at->second));
      if (!entry.type) continue;
      loaded.tensors.push_back({.name = std::move(entry.name),
                                .type = *entry.type,
                                .shape = std::move(entry.shape),
                                .bytes = entry.bytes});
    }
    loaded.maps.push_back(*std::move(map));
  }
  for (const auto& [tensor, file] : plan.file_of_tensor) {
    const auto at = seen.find(tensor);
    if (at == seen.end() || at->second != file) {
      return base::DataLossError(
          fmt::format("{}/{}: tensor {} should be here according to the index but is not; download "
                      "the model again",
                      folder,
                      file,
                      Quoted(tensor)));
    }
  }
  return loaded;
}

StatusOr<text::VocabSpec> ReadVocab(const std::string& folder, const HfConfig& config) {
  const std::string path = folder + "/tokenizer.json";
  StatusOr<std::string> text = ReadSmallFile(path, kMaxTokenizerBytes);
  if (!text.ok()) {
    return text.status().code() == StatusCode::kNotFound
               ? base::NotFoundError(fmt::format(
                     "{}: the tokenizer is missing; download tokenizer.json of this model", path))
               : text.status();
  }
  StatusOr<text::VocabSpec> spec = ReadTokenizerJson(*text);
  if (!spec.ok()) return spec.status().WithContext(path);
  config.Complete(*spec);
  return spec;
}

std::string FolderName(const std::string& folder) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(folder, error);
  const std::string name = (error ? fs::path(folder) : path).filename().string();
  return name.empty() ? folder : name;
}

}  // namespace

StatusOr<std::unique_ptr<const ModelSource>> OpenHfFolder(const std::string& folder) {
  HOLMES_ASSIGN_OR_RETURN(HfConfig config, HfConfig::Read(folder));
  HOLMES_ASSIGN_OR_RETURN(const ShardPlan plan, PlanShards(folder));
  HOLMES_ASSIGN_OR_RETURN(LoadedShards loaded, LoadShards(folder, plan));
  StatusOr<text::VocabSpec> vocab = ReadVocab(folder, config);
  return std::unique_ptr<const ModelSource>(
      std::make_unique<HfFolder>(FolderName(folder),
                                 std::move(config),
                                 std::move(vocab),
                                 std::move(loaded.maps),
                                 TensorIndex(std::move(loaded.tensors))));
}

}  // namespace holmes::weights
