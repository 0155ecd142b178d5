/// Methods and paths to handlers, with the answers for what matches none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/http_types.h"

namespace holmes::net {

/// Fill it, then use it from any thread. Answers 404 for an unknown path, 405 with Allow for a
/// known path with another method, 204 with Allow (and what a browser's preflight asks for) for
/// OPTIONS. HEAD goes to GET's handler: the connection leaves the body out.
class Router {
 public:
  explicit Router(ErrorBodyFn error_body = JsonErrorBody) : error_body_(std::move(error_body)) {}

  /// `pattern` is a path, or one that ends in "/{name}", which matches any rest that is not empty
  /// (ids with slashes too).
  void Add(std::string method, std::string pattern, Handler handler);
  void Handle(HttpRequest request, std::shared_ptr<ResponseWriter> writer) const;

 private:
  struct Route {
    std::string method;
    std::string path;  // or the prefix, ending in '/'
    bool has_param;
    Handler handler;
  };
  static bool Matches(const Route& route, std::string_view path);
  std::vector<Route> routes_;
  ErrorBodyFn error_body_;
};

}  // namespace holmes::net
