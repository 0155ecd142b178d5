/// The little of OpenAI's API that the commands speak as clients.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http_client.h"

namespace holmes::app {

struct Endpoint {
  std::string base;     // ends in "/v1"
  std::string api_key;  // empty = none
};

/// Takes "http://host:8000", "http://host:8000/" and "http://host:8000/v1".
Endpoint MakeEndpoint(std::string_view url, std::string api_key);

/// The first model that the server lists. Errors: as ErrorOf, kUnavailable, kDataLoss, kNotFound
/// (none).
StatusOr<std::string> FirstModel(const Endpoint& endpoint);

/// A request with the endpoint's headers; `path` as "/chat/completions", an empty body makes it a
/// GET.
net::ClientRequest MakeRequest(const Endpoint& endpoint, std::string_view path, std::string body);

/// kOk for 2xx, else the server's own message ("error.message") with the HTTP status in front.
Status ErrorOf(const net::ClientResponse& response);

/// One event of a streamed completion.
struct StreamChunk {
  std::string text;  // of choice 0: delta.content or text
  bool has_choice = false;
  bool has_usage = false;
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int cached_prompt_tokens = 0;
};
/// Errors: kDataLoss; an error object of the server becomes its message.
StatusOr<StreamChunk> ParseChunk(std::string_view data);

}  // namespace holmes::app
