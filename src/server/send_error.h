/// An error of the API as an HTTP answer.
#pragma once

#include "api/errors.h"
#include "net/http_types.h"

namespace holmes::server {

/// Adds Content-Type and, where the error asks to come back later, Retry-After.
void SendError(net::ResponseWriter& writer, const api::ErrorResponse& error, net::Headers headers);

}  // namespace holmes::server
