/// The one table from Status to HTTP status and OpenAI's error body.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace holmes::api {

struct ErrorResponse {
  int http_status = 500;
  std::string body;             // {"error": {"message", "type", "param", "code"}}
  int retry_after_seconds = 0;  // for 429 and 503; 0 = no header
};

/// Precondition: !status.ok().
ErrorResponse ToErrorResponse(const Status& status);

/// An error of HTTP itself (404 for a path, 405, 413, 415 ...), in the same body.
ErrorResponse HttpError(int http_status, std::string_view message);

}  // namespace holmes::api
