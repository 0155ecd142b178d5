#include "app/openai_client.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <optional>

namespace holmes::app {
namespace json = boost::json;
namespace {

constexpr std::size_t kMaxQuoted = 200;

std::optional<json::object> ParseObject(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.as_object());
}

const json::value* FindIn(const json::value* value, std::string_view key) {
  const json::object* object = value == nullptr ? nullptr : value->if_object();
  return object == nullptr ? nullptr : object->if_contains({key.data(), key.size()});
}

std::string TextOf(const json::value* value) {
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? "" : std::string(text->data(), text->size());
}

int IntOf(const json::value* value) {
  if (value == nullptr || !value->is_number()) return 0;
  boost::system::error_code error;
  const int number = value->to_number<int>(error);
  return error ? 0 : number;
}

/// "error.message", or the body itself where that is not OpenAI's format.
std::string ErrorMessage(std::string_view body) {
  const std::optional<json::object> object = ParseObject(body);
  if (object) {
    const json::value root(*object);
    const json::value* error = FindIn(&root, "error");
    if (std::string message = TextOf(FindIn(error, "message")); !message.empty()) return message;
  }
  return std::string(body.substr(0, kMaxQuoted));
}

StatusCode CodeOfHttp(int status) {
  if (status == 400 || status == 413 || status == 415 || status == 422)
    return StatusCode::kInvalidArgument;
  if (status == 401) return StatusCode::kUnauthenticated;
  if (status == 403) return StatusCode::kPermissionDenied;
  if (status == 404) return StatusCode::kNotFound;
  if (status == 429) return StatusCode::kResourceExhausted;
  return StatusCode::kUnavailable;
}

}  // namespace

Endpoint MakeEndpoint(std::string_view url, std::string api_key) {
  while (url.ends_with('/')) url.remove_suffix(1);
  return {.base = url.ends_with("/v1") ? std::string(url) : std::string(url) + "/v1",
          .api_key = std::move(api_key)};
}

net::ClientRequest MakeRequest(const Endpoint& endpoint, std::string_view path, std::string body) {
  net::ClientRequest request;
  request.method = body.empty() ? "GET" : "POST";
  request.url = endpoint.base + std::string(path);
  if (!body.empty()) request.headers.push_back({"Content-Type", "application/json"});
  if (!endpoint.api_key.empty())
    request.headers.push_back({"Authorization", "Bearer " + endpoint.api_key});
  request.body = std::move(body);
  return request;
}

Status ErrorOf(const net::ClientResponse& response) {
  if (response.status / 100 == 2) return OkStatus();
  return {CodeOfHttp(response.status),
          fmt::format("HTTP status {}: {}", response.status, ErrorMessage(response.body))};
}

StatusOr<std::string> FirstModel(const Endpoint& endpoint) {
  HOLMES_ASSIGN_OR_RETURN(const net::ClientResponse response,
                          net::Fetch(MakeRequest(endpoint, "/models", "")));
  if (const Status status = ErrorOf(response); !status.ok())
    return status.WithContext(endpoint.base + "/models");
  const std::optional<json::object> object = ParseObject(response.body);
  const json::value* data = object ? object->if_contains("data") : nullptr;
  const json::array* models = data == nullptr ? nullptr : data->if_array();
  if (models == nullptr)
    return base::DataLossError(
        fmt::format("{}/models is not a list of models in OpenAI's format", endpoint.base));
  if (models->empty()) return base::NotFoundError(fmt::format("{} serves no model", endpoint.base));
  return TextOf(FindIn(&models->front(), "id"));
}

StatusOr<StreamChunk> ParseChunk(std::string_view data) {
  const std::optional<json::object> object = ParseObject(data);
  if (!object)
    return base::DataLossError(
        fmt::format("the server sent an event that is not JSON: {}", data.substr(0, kMaxQuoted)));
  const json::value root(*object);
  if (FindIn(&root, "error") != nullptr) return base::UnavailableError(ErrorMessage(data));
  StreamChunk chunk;
  const json::value* choices = FindIn(&root, "choices");
  if (const json::array* list = choices == nullptr ? nullptr : choices->if_array();
      list != nullptr && !list->empty()) {
    chunk.has_choice = true;
    const json::value* delta = FindIn(&list->front(), "delta");
    chunk.text =
        TextOf(delta != nullptr ? FindIn(delta, "content") : FindIn(&list->front(), "text"));
  }
  if (const json::value* usage = FindIn(&root, "usage"); usage != nullptr && usage->is_object()) {
    chunk.has_usage = true;
    chunk.prompt_tokens = IntOf(FindIn(usage, "prompt_tokens"));
    chunk.completion_tokens = IntOf(FindIn(usage, "completion_tokens"));
    chunk.cached_prompt_tokens =
        IntOf(FindIn(FindIn(usage, "prompt_tokens_details"), "cached_tokens"));
  }
  return chunk;
}

}  // namespace holmes::app
