#include "weights/gguf_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "weights/gguf.h"
#include "weights/gguf_vocab.h"
#include "weights/mapped_file.h"
#include "weights/source_index.h"

namespace holmes::weights {
namespace {

class GgufSource final : public ModelSource {
 public:
  GgufSource(MappedFile map, GgufFile file, std::vector<TokenId> end_ids)
      : map_(std::move(map)),
        file_(std::move(file)),
        end_ids_(std::move(end_ids)),
        index_(MakeTensors(file_)) {
    architecture_ = Text("general.architecture");
    chat_template_ = Text("tokenizer.chat_template");
    name_ = Text("general.name");
    if (name_.empty()) name_ = std::filesystem::path(map_.path()).stem().string();
  }

  Format format() const override { return Format::kGguf; }
  std::string_view architecture() const override { return architecture_; }
  std::string_view name() const override { return name_; }
  std::span<const TensorRef> tensors() const override { return index_.tensors(); }
  const TensorRef* Find(std::string_view tensor_name) const override {
    return index_.Find(tensor_name);
  }

  std::optional<double> Number(std::string_view key) const override {
    const GgufValue* const value = file_.Find(key);
    return value == nullptr ? std::nullopt : value->Number();
  }
  std::optional<bool> Bool(std::string_view key) const override {
    const GgufValue* const value = file_.Find(key);
    return value == nullptr ? std::nullopt : value->Bool();
  }
  std::optional<std::string> String(std::string_view key) const override {
    const GgufValue* const value = file_.Find(key);
    const std::optional<std::string_view> text = value == nullptr ? std::nullopt : value->String();
    if (!text) return std::nullopt;
    return std::string(*text);
  }
  std::optional<std::vector<double>> Numbers(std::string_view key) const override {
    const GgufValue* const value = file_.Find(key);
    return value == nullptr ? std::nullopt : value->Numbers();
  }

  StatusOr<text::VocabSpec> Vocab() const override { return ReadGgufVocab(file_, map_.path()); }
  std::string_view chat_template() const override { return chat_template_; }
  std::vector<TokenId> EndOfGeneration() const override { return end_ids_; }

 private:
  static std::vector<TensorRef> MakeTensors(const GgufFile& file) {
    std::vector<TensorRef> tensors;
    tensors.reserve(file.tensors().size());
    for (const GgufTensor& tensor : file.tensors()) {
      if (!tensor.type) continue;  // integers and doubles are no weights
      TensorRef ref{.name = std::string(tensor.name),
                    .type = *tensor.type,
                    .shape = {},
                    .bytes = tensor.bytes};
      ref.shape.assign(tensor.dims.rbegin(), tensor.dims.rend());
      tensors.push_back(std::move(ref));
    }
    return tensors;
  }

  std::string_view Text(std::string_view key) const {
    const GgufValue* const value = file_.Find(key);
    return value == nullptr ? std::string_view() : value->String().value_or(std::string_view());
  }

  MappedFile map_;
  GgufFile file_;  // borrows map_
  std::vector<TokenId> end_ids_;
  TensorIndex index_;
  std::string_view architecture_;   // borrows map_
  std::string_view chat_template_;  // borrows map_
  std::string name_;
};

}  // namespace

StatusOr<std::unique_ptr<const ModelSource>> OpenGgufSource(const std::string& path) {
  HOLMES_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  HOLMES_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Parse(map.bytes(), path));
  const GgufValue* const architecture = file.Find("general.architecture");
  if (architecture == nullptr || !architecture->String() || architecture->String()->empty()) {
    return base::DataLossError(
        fmt::format("{}: general.architecture is missing; convert the model again", path));
  }
  if (const GgufValue* const split = file.Find("split.count");
      split != nullptr && split->Integer().value_or(1) > 1) {
    return base::UnimplementedError(
        fmt::format("{}: the model is split into {} files, which is not supported; merge them into "
                    "one .gguf first",
                    path,
                    *split->Integer()));
  }
  HOLMES_ASSIGN_OR_RETURN(std::vector<TokenId> end_ids, ReadGgufEndIds(file, path));
  return std::unique_ptr<const ModelSource>(
      std::make_unique<GgufSource>(std::move(map), std::move(file), std::move(end_ids)));
}

}  // namespace holmes::weights
