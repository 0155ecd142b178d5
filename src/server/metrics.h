/// What /metrics shows.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <string>

#include "engine/engine.h"
#include "net/http_server.h"

namespace holmes::server {

/// How a request of the API ended.
enum class Outcome { kOk, kCancelled, kRejected, kFailed };

/// Thread-safe.
class Metrics {
 public:
  explicit Metrics(std::string model_name);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void CountRequest(Outcome outcome);
  void ObserveFirstToken(std::chrono::duration<double> since_received);
  /// Of one sample: the mean time between its tokens.
  void ObserveTokenTime(std::chrono::duration<double> per_token);
  void ObserveRequest(std::chrono::duration<double> since_received);

  /// The exposition format (text, version 0.0.4).
  std::string Text(const engine::EngineStats& engine, const net::HttpServerStats& http) const;

 private:
  const std::string model_name_;
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Histogram& first_token_;
  prometheus::Histogram& token_time_;
  prometheus::Histogram& request_time_;
};

}  // namespace holmes::server
