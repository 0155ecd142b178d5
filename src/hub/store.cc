#include "hub/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/edit_distance.h"

namespace holmes::hub {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kRepositoryPrefix = "models--";
constexpr int kMaxFilesPerSnapshot = 10'000;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool EndsWithNoCase(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && Lower(text.substr(text.size() - end.size())) == Lower(end);
}

/// As users shorten names: lower case, without the suffix that only tells the format.
std::string Simplify(std::string_view name) {
  std::string out = Lower(name);
  if (EndsWithNoCase(out, "-gguf")) out.resize(out.size() - 5);
  return out;
}

std::string_view LastComponent(std::string_view id) {
  const std::size_t slash = id.rfind('/');
  return slash == std::string_view::npos ? id : id.substr(slash + 1);
}

/// "models--org--name" to "org/name"; empty for another kind of folder.
std::string IdOfRepository(std::string_view folder) {
  if (!folder.starts_with(kRepositoryPrefix)) return "";
  std::string id(folder.substr(kRepositoryPrefix.size()));
  if (const std::size_t at = id.find("--"); at != std::string::npos) id.replace(at, 2, "/");
  return id;
}

/// The snapshot of refs/main, or the only one there is.
std::optional<fs::path> MainSnapshot(const fs::path& repository) {
  std::error_code error;
  std::string revision;
  if (std::ifstream file(repository / "refs" / "main"); file) file >> revision;
  if (!revision.empty() && revision.size() <= 255 && revision.find('/') == std::string::npos &&
      revision != "..") {
    const fs::path snapshot = repository / "snapshots" / revision;
    if (fs::is_directory(snapshot, error)) return snapshot;
  }
  std::optional<fs::path> only;
  for (fs::directory_iterator it(repository / "snapshots", error), end; !error && it != end;
       it.increment(error)) {
    if (only.has_value()) return std::nullopt;
    only = it->path();
  }
  return only;
}

struct SnapshotFiles {
  std::vector<fs::path>
      ggufs;  // whole ones: a link whose blob is missing is a download that broke off
  bool has_config = false;
  bool has_safetensors = false;
  std::int64_t safetensors_bytes = 0;
};

SnapshotFiles LookInto(const fs::path& snapshot) {
  SnapshotFiles out;
  std::error_code error;
  int num_files = 0;
  for (fs::recursive_directory_iterator it(snapshot, error), end; !error && it != end;
       it.increment(error)) {
    if (++num_files > kMaxFilesPerSnapshot) break;
    std::error_code missing;
    const auto size =
        fs::is_regular_file(it->path(), missing) ? fs::file_size(it->path(), missing) : 0;
    if (missing || size == 0) continue;
    const std::string name = it->path().filename().string();
    if (EndsWithNoCase(name, ".gguf")) out.ggufs.push_back(it->path());
    if (it.depth() > 0) continue;
    out.has_config |= name == "config.json";
    if (EndsWithNoCase(name, ".safetensors")) {
      out.has_safetensors = true;
      out.safetensors_bytes += static_cast<std::int64_t>(size);
    }
  }
  std::sort(out.ggufs.begin(), out.ggufs.end());
  return out;
}

void ListRepository(const fs::path& repository,
                    const std::string& id,
                    std::vector<StoredModel>& out) {
  const std::optional<fs::path> snapshot = MainSnapshot(repository);
  if (!snapshot) return;
  const SnapshotFiles files = LookInto(*snapshot);
  if (files.has_config && files.has_safetensors) {
    out.push_back({.id = id, .path = snapshot->string(), .size_bytes = files.safetensors_bytes});
  }
  // A folder of safetensors takes the plain id; files beside it and several files are told apart by
  // their names.
  const bool plain = files.ggufs.size() == 1 && (out.empty() || out.back().id != id);
  for (const fs::path& file : files.ggufs) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    out.push_back({.id = plain ? id : fmt::format("{}:{}", id, file.filename().string()),
                   .path = file.string(),
                   .size_bytes = error ? 0 : static_cast<std::int64_t>(size)});
  }
}

struct WantedName {
  std::string repository;
  std::string file_part;
};

WantedName SplitName(std::string_view model) {
  const std::size_t colon = model.find(':');
  if (colon == std::string_view::npos) return {std::string(model), ""};
  return {std::string(model.substr(0, colon)), Lower(model.substr(colon + 1))};
}

bool Matches(const StoredModel& stored, const WantedName& wanted) {
  const std::string_view id = std::string_view(stored.id).substr(0, stored.id.find(':'));
  const std::string name = Simplify(wanted.repository);
  if (Simplify(id) != name && Simplify(LastComponent(id)) != name) return false;
  return Lower(fs::path(stored.path).filename().string()).find(wanted.file_part) !=
         std::string::npos;
}

bool LooksLikePath(std::string_view model) {
  if (model.starts_with('/') || model.starts_with('.') || model.starts_with('~')) return true;
  return EndsWithNoCase(model, ".gguf") && model.find(':') == std::string_view::npos;
}

Status NoSuchFile(std::string_view model) {
  std::error_code error;
  const fs::path path = fs::absolute(fs::path(model), error);
  std::vector<std::string> siblings;
  for (fs::directory_iterator it(path.parent_path(), error), end;
       !error && it != end && siblings.size() < 10'000;
       it.increment(error)) {
    siblings.push_back(it->path().filename().string());
  }
  if (error)
    return base::NotFoundError(fmt::format("there is no model at {}: the folder {} cannot be read",
                                           model,
                                           path.parent_path().string()));
  const std::string wanted = path.filename().string();
  const std::string nearest = base::Nearest(wanted, siblings);
  if (!nearest.empty() &&
      base::EditDistance(wanted, nearest) <= static_cast<int>(wanted.size() / 3)) {
    return base::NotFoundError(fmt::format("there is no model at {}; did you mean {}?",
                                           model,
                                           (path.parent_path() / nearest).string()));
  }
  return base::NotFoundError(fmt::format(
      "there is no model at {}: give a .gguf file or a folder with config.json and *.safetensors",
      model));
}

std::vector<std::string> IdsOf(const std::vector<StoredModel>& models) {
  std::vector<std::string> ids;
  for (const StoredModel& model : models) ids.push_back(model.id);
  return ids;
}

/// The id that somebody probably meant: names are compared as users shorten them.
std::string NearestId(std::string_view wanted, const std::vector<std::string>& ids) {
  std::string best;
  int best_distance = 0;
  for (const std::string& id : ids) {
    const int distance =
        std::min(base::EditDistance(Simplify(wanted), Simplify(id)),
                 base::EditDistance(Simplify(wanted), Simplify(LastComponent(id))));
    if (best.empty() || distance < best_distance) {
      best = id;
      best_distance = distance;
    }
  }
  return best;
}

Status NotInStore(std::string_view model,
                  const std::string& dir,
                  const std::vector<StoredModel>& stored) {
  if (stored.empty()) {
    return base::NotFoundError(
        fmt::format("{} is neither a file nor a folder, and the model store {} is empty: give a "
                    ".gguf file or a folder with "
                    "config.json and *.safetensors",
                    model,
                    dir.empty() ? "(set HF_HOME or HOME)" : dir));
  }
  const std::vector<std::string> ids = IdsOf(stored);
  const std::size_t num_shown = std::min<std::size_t>(ids.size(), 8);
  return base::NotFoundError(fmt::format(
      "{} is neither a file nor a folder nor in the model store {}; the nearest there is {} (of "
      "{}: {}{})",
      model,
      dir,
      NearestId(model, ids),
      ids.size(),
      fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(num_shown), ", "),
      num_shown < ids.size() ? " ... see `holmes list`" : ""));
}

}  // namespace

std::string DefaultStoreDir() {
  if (std::string dir = Environment("HF_HUB_CACHE"); !dir.empty()) return dir;
  if (std::string home = Environment("HF_HOME"); !home.empty()) return home + "/hub";
  if (std::string cache = Environment("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/huggingface/hub";
  if (std::string home = Environment("HOME"); !home.empty())
    return home + "/.cache/huggingface/hub";
  return "";
}

std::vector<StoredModel> Store::List() const {
  std::vector<StoredModel> out;
  if (dir_.empty()) return out;
  std::error_code error;
  for (fs::directory_iterator it(dir_, error), end; !error && it != end; it.increment(error)) {
    const std::string id = IdOfRepository(it->path().filename().string());
    if (!id.empty()) ListRepository(it->path(), id, out);
  }
  std::sort(out.begin(), out.end(), [](const StoredModel& a, const StoredModel& b) {
    return a.id < b.id;
  });
  return out;
}

StatusOr<ResolvedModel> Store::Resolve(std::string_view model) const {
  if (model.empty())
    return base::InvalidArgumentError(
        "no model is named: give a .gguf file, a folder or a name of the store (`holmes list`)");
  std::error_code error;
  if (const fs::path path{model}; fs::exists(path, error)) {
    fs::path last = fs::absolute(path, error).lexically_normal();
    if (!last.has_filename()) last = last.parent_path();  // "folder/"
    std::string name = last.filename().string();
    if (EndsWithNoCase(name, ".gguf")) name.resize(name.size() - 5);
    return ResolvedModel{.path = path.string(), .name = std::move(name)};
  }
  if (LooksLikePath(model)) return NoSuchFile(model);

  const std::vector<StoredModel> stored = List();
  const WantedName wanted = SplitName(model);
  std::vector<StoredModel> found;
  std::copy_if(
      stored.begin(), stored.end(), std::back_inserter(found), [&](const StoredModel& one) {
        return Matches(one, wanted);
      });
  if (found.empty()) return NotInStore(model, dir_, stored);
  if (found.size() > 1) {
    return base::InvalidArgumentError(fmt::format(
        "{} fits several models of the store; name one: {}", model, fmt::join(IdsOf(found), ", ")));
  }
  return ResolvedModel{.path = found[0].path, .name = found[0].id};
}

}  // namespace holmes::hub
