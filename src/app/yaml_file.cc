#include "app/yaml_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <fstream>
#include <set>

namespace holmes::app {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;

StatusOr<std::string> ReadSmallFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return base::ErrnoError(errno, fmt::format("opening {}", path));
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad())
    return base::ErrnoError(errno == 0 ? EIO : errno, fmt::format("reading {}", path));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxBytes)
    return base::InvalidArgumentError(
        fmt::format("{} is larger than {} bytes: that is no settings file", path, kMaxBytes));
  return text;
}

StatusOr<std::vector<YamlEntry>> EntriesOf(const YAML::Node& root, const std::string& path) {
  std::vector<YamlEntry> entries;
  if (root.IsNull()) return entries;
  if (!root.IsMap())
    return base::InvalidArgumentError(
        fmt::format("{}: expected lines of the form `name: value`", path));
  std::set<std::string> seen;
  for (const auto& item : root) {
    const int line = item.first.Mark().line + 1;
    if (!item.first.IsScalar())
      return base::InvalidArgumentError(
          fmt::format("{}:{}: a name must be a single word", path, line));
    const std::string& key = item.first.Scalar();
    if (!item.second.IsScalar())
      return base::InvalidArgumentError(
          fmt::format("{}:{}: {} must have a single value", path, line, key));
    if (!seen.insert(key).second)
      return base::InvalidArgumentError(fmt::format("{}:{}: {} is given twice", path, line, key));
    entries.push_back({.key = key, .value = item.second.Scalar(), .line = line});
  }
  return entries;
}

}  // namespace

StatusOr<std::vector<YamlEntry>> ReadYamlFile(const std::string& path) {
  HOLMES_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path));
  try {
    return EntriesOf(YAML::Load(text), path);
  } catch (const YAML::Exception& error) {
    return base::InvalidArgumentError(
        fmt::format("{}:{}: {}", path, error.mark.line + 1, error.msg));
  }
}

}  // namespace holmes::app
