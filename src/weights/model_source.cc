#include "weights/model_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "weights/gguf_source.h"
#include "weights/hf_folder.h"

namespace holmes::weights {
namespace {

namespace fs = std::filesystem;

struct FolderContent {
  bool has_config = false;
  bool has_safetensors = false;
  std::vector<std::string> gguf_files;
};

StatusOr<FolderContent> ListFolder(const std::string& path) {
  FolderContent content;
  std::error_code error;
  fs::directory_iterator at(path, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const fs::path& file = at->path();
    content.has_config |= file.filename() == "config.json";
    content.has_safetensors |= file.extension() == ".safetensors";
    if (file.extension() == ".gguf") content.gguf_files.push_back(file.string());
  }
  if (error) return base::ErrnoError(error.value(), fmt::format("list {}", path));
  return content;
}

}  // namespace

StatusOr<std::unique_ptr<const ModelSource>> ModelSource::Open(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    return base::NotFoundError(fmt::format("{}: no such file or folder", path));
  if (error) return base::ErrnoError(error.value(), fmt::format("look at {}", path));
  if (status.type() != fs::file_type::directory) {
    if (fs::path(path).extension() == ".safetensors") {
      return base::InvalidArgumentError(
          fmt::format("{}: a .safetensors file is only part of a model; name the folder that also "
                      "holds config.json",
                      path));
    }
    return OpenGgufSource(path);
  }
  HOLMES_ASSIGN_OR_RETURN(const FolderContent content, ListFolder(path));
  if (content.gguf_files.size() == 1 && !content.has_safetensors)
    return OpenGgufSource(content.gguf_files[0]);
  if (content.gguf_files.size() > 1 && !content.has_safetensors) {
    return base::InvalidArgumentError(fmt::format(
        "{}: the folder holds {} .gguf files; name one of them", path, content.gguf_files.size()));
  }
  if (content.has_config) return OpenHfFolder(path);
  if (content.has_safetensors) {
    return base::InvalidArgumentError(fmt::format(
        "{}: *.safetensors are there but no config.json; download it beside them", path));
  }
  return base::InvalidArgumentError(fmt::format(
      "{}: no model here: a .gguf file, or config.json with *.safetensors, is expected", path));
}

}  // namespace holmes::weights
