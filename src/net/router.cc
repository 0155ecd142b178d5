#include "net/router.h"

#include <fmt/format.h>

#include <utility>

namespace holmes::net {

void Router::Add(std::string method, std::string pattern, Handler handler) {
  const std::size_t brace = pattern.find("/{");
  const bool has_param = brace != std::string::npos;
  if (has_param) pattern.resize(brace + 1);
  routes_.push_back({std::move(method), std::move(pattern), has_param, std::move(handler)});
}

bool Router::Matches(const Route& route, std::string_view path) {
  if (!route.has_param) return path == route.path;
  return path.size() > route.path.size() && path.starts_with(route.path);
}

void Router::Handle(HttpRequest request, std::shared_ptr<ResponseWriter> writer) const {
  std::string allow;
  const std::string_view wanted =
      request.method == "HEAD" ? "GET" : std::string_view(request.method);
  for (const Route& route : routes_) {
    if (!Matches(route, request.path)) continue;
    if (route.method == wanted) {
      if (route.has_param) request.path_param = request.path.substr(route.path.size());
      route.handler(std::move(request), std::move(writer));
      return;
    }
    allow += (allow.empty() ? "" : ", ") + route.method;
    if (route.method == "GET") allow += ", HEAD";
  }
  if (request.method == "OPTIONS" && (!allow.empty() || request.path == "*")) {
    allow += allow.empty() ? "OPTIONS" : ", OPTIONS";
    writer->Send(204,
                 {{"Allow", allow},
                  {"Access-Control-Allow-Methods", allow},
                  {"Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id"},
                  {"Access-Control-Max-Age", "600"}},
                 "");
    return;
  }
  if (!allow.empty()) {
    const std::string message =
        fmt::format("{} is not possible on {}; it takes {}.", request.method, request.path, allow);
    writer->Send(405,
                 {{"Content-Type", "application/json"}, {"Allow", allow + ", OPTIONS"}},
                 error_body_(405, message));
    return;
  }
  writer->Send(
      404,
      {{"Content-Type", "application/json"}},
      error_body_(404, fmt::format("There is nothing at {} {}.", request.method, request.path)));
}

}  // namespace holmes::net
