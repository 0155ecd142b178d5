/// The HTTP API of one model: OpenAI's completions, models, tokenizing, health and metrics
/// (docs/api.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "net/http_server.h"
#include "server/generation.h"
#include "server/prompt.h"

namespace holmes::server {

struct ServerOptions {
  net::HttpServerOptions http;  // error_body is set by Create
  /// Not empty: /v1/*, /tokenize and /detokenize want "Authorization: Bearer <key>".
  std::string api_key;
  /// Threads that parse, render and tokenize, and the bodies that may wait for them (more are
  /// answered 429).
  std::size_t worker_threads = 2;
  std::size_t worker_queue = 1024;
  /// From a request's arrival to its complete answer, in seconds; 0 = no limit. The header
  /// x-request-timeout may ask for less. What is late is cancelled and answered with 504.
  double request_timeout_s = 0;
};

struct ServedModel {
  /// Names that requests may call the model by, the first one in answers; empty = the engine's name
  /// for it.
  std::vector<std::string> names;
  GenerationDefaults defaults;
  /// Empty: the model's own chat template; without one, chat requests are refused.
  ChatRenderer render_chat;
};

/// Thread-safe. Readiness begins false. Until Serve, /health answers 200 and everything else 503,
/// so that a port can be taken before a model is loaded.
class Server {
 public:
  /// Binds the port. Errors: those of net::HttpServer::Create.
  static StatusOr<std::unique_ptr<Server>> Create(ServerOptions options);
  /// As Stop with no time left.
  virtual ~Server() = default;

  virtual void Start() = 0;
  virtual std::uint16_t port() const = 0;
  /// From now on requests are answered. Call once; `engine` outlives the server.
  virtual void Serve(engine::Engine* engine, ServedModel model) = 0;
  /// What /ready says. Requests are taken either way, once there is a model.
  virtual void SetReady(bool ready) = 0;
  /// Not ready from now on; drains the engine, then closes connections. True when every answer
  /// could finish before `deadline`.
  virtual bool Stop(std::chrono::steady_clock::time_point deadline) = 0;
};

}  // namespace holmes::server
