/// Summaries of measured samples, and how `holmes bench` prints them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace holmes::app {

/// The value below which `percent` of the samples lie, interpolated between neighbours (type 7 of
/// Hyndman and Fan 1996). 0 without samples.
double Percentile(std::vector<double> samples, double percent);

/// Named numbers of one measurement, in order.
struct BenchRow {
  std::string name;
  std::vector<std::pair<std::string, double>> values;
};

/// Aligned columns for people.
std::string BenchTable(const std::vector<BenchRow>& rows);
/// [{"name": ..., key: value ...}, ...].
std::string BenchJson(const std::vector<BenchRow>& rows);

}  // namespace holmes::app
