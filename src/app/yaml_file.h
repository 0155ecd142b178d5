/// A YAML file of plain settings: one map from names to single values.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace holmes::app {

struct YamlEntry {
  std::string key;
  std::string value;
  int line = 0;  // from 1
};

/// In the file's order; an empty file has none.
/// Errors: kNotFound, kPermissionDenied, kInvalidArgument with file and line (no map, a value that
/// is a list or map or missing, a key given twice, more than 1 MiB, wrong syntax).
StatusOr<std::vector<YamlEntry>> ReadYamlFile(const std::string& path);

}  // namespace holmes::app
