#include "server/send_error.h"

#include <string>
#include <utility>

namespace holmes::server {

void SendError(net::ResponseWriter& writer, const api::ErrorResponse& error, net::Headers headers) {
  headers.push_back({"Content-Type", "application/json"});
  if (error.retry_after_seconds > 0)
    headers.push_back({"Retry-After", std::to_string(error.retry_after_seconds)});
  if (error.http_status == 401) headers.push_back({"WWW-Authenticate", "Bearer"});
  writer.Send(error.http_status, std::move(headers), error.body);
}

}  // namespace holmes::server
