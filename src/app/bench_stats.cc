#include "app/bench_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "api/json_writer.h"

namespace holmes::app {

double Percentile(std::vector<double> samples, double percent) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const double at = percent / 100 * static_cast<double>(samples.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const std::size_t high = std::min(low + 1, samples.size() - 1);
  return samples[low] + (samples[high] - samples[low]) * (at - static_cast<double>(low));
}

std::string BenchTable(const std::vector<BenchRow>& rows) {
  std::string out;
  for (const BenchRow& row : rows) {
    out += fmt::format("{:<28}", row.name);
    for (const auto& [key, value] : row.values) out += fmt::format("  {} {:.4g}", key, value);
    out += '\n';
  }
  return out;
}

std::string BenchJson(const std::vector<BenchRow>& rows) {
  api::JsonWriter json;
  json.BeginArray();
  for (const BenchRow& row : rows) {
    json.BeginObject().Key("name").String(row.name);
    for (const auto& [key, value] : row.values) json.Key(key).Number(value);
    json.EndObject();
  }
  json.EndArray();
  return json.Take();
}

}  // namespace holmes::app
