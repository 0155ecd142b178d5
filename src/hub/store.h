/// The model store of this machine: the Hugging Face cache, whoever filled it.
/// Layout: models--ORG--NAME/{blobs/HASH, snapshots/REVISION/FILE -> ../../blobs/HASH, refs/main}.
/// Source: huggingface_hub's documentation, "Understand caching".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace holmes::hub {

/// $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
/// ~/.cache/huggingface/hub. Empty when none of them is set.
std::string DefaultStoreDir();

/// One thing that can be served: a .gguf file, or a snapshot folder with config.json and
/// safetensors.
struct StoredModel {
  std::string id;    // "org/name"; with several .gguf files "org/name:file"
  std::string path;  // inside the snapshot
  std::int64_t size_bytes = 0;
};

struct ResolvedModel {
  std::string path;
  /// What to call it in the API: the id, or a path's last component without ".gguf".
  std::string name;
};

/// Stateless but for its folder: every call looks at the disk. Thread-safe.
class Store {
 public:
  explicit Store(std::string dir) : dir_(std::move(dir)) {}

  /// Complete models in alphabetic order. Repositories without one (of another kind, half
  /// downloaded) are left out, as is a store that does not exist or cannot be read.
  std::vector<StoredModel> List() const;

  /// `model` is the path of a file or folder, or a name in the store: "org/name", "name", either
  /// with ":" and a part of the file's name
  /// ("Q4_1"). Upper and lower case are the same, and a trailing "-GGUF" may be left out.
  /// Errors: kInvalidArgument (empty; a name that fits several files, all of them named), kNotFound
  /// (names the nearest and how to look).
  StatusOr<ResolvedModel> Resolve(std::string_view model) const;

  const std::string& dir() const { return dir_; }

 private:
  std::string dir_;
};

}  // namespace holmes::hub
