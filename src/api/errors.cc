#include "api/errors.h"

#include <fmt/format.h>

#include "api/json_writer.h"

namespace holmes::api {
namespace {

struct Row {
  int http_status;
  const char* type;
  const char* code;  // null = JSON null
  int retry_after_seconds;
};

Row RowOf(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
      return {400, "invalid_request_error", "invalid_value", 0};
    case StatusCode::kUnimplemented:
      return {400, "invalid_request_error", "unsupported_parameter", 0};
    case StatusCode::kFailedPrecondition:
      return {400, "invalid_request_error", "failed_precondition", 0};
    case StatusCode::kUnauthenticated:
      return {401, "authentication_error", "invalid_api_key", 0};
    case StatusCode::kPermissionDenied:
      return {403, "permission_error", nullptr, 0};
    case StatusCode::kNotFound:
      return {404, "invalid_request_error", "not_found", 0};
    case StatusCode::kAlreadyExists:
    case StatusCode::kAborted:
      return {409, "conflict_error", nullptr, 0};
    case StatusCode::kResourceExhausted:
      return {429, "rate_limit_error", "overloaded", 1};
    case StatusCode::kCancelled:
      return {499, "request_cancelled", "cancelled", 0};
    case StatusCode::kUnavailable:
      return {503, "server_error", "unavailable", 2};
    case StatusCode::kDeadlineExceeded:
      return {504, "server_error", "deadline_exceeded", 0};
    case StatusCode::kOk:
    case StatusCode::kUnknown:
    case StatusCode::kInternal:
    case StatusCode::kDataLoss:
      break;
  }
  return {500, "server_error", nullptr, 0};
}

ErrorResponse Make(const Row& row, std::string_view message, std::string_view param) {
  JsonWriter json;
  json.BeginObject().Key("error").BeginObject();
  json.Key("message").String(message).Key("type").String(row.type);
  json.Key("param");
  param.empty() ? json.Null() : json.String(param);
  json.Key("code");
  row.code == nullptr ? json.Null() : json.String(row.code);
  json.EndObject().EndObject();
  return {row.http_status, json.Take(), row.retry_after_seconds};
}

}  // namespace

ErrorResponse ToErrorResponse(const Status& status) {
  return Make(RowOf(status.code()), status.message(), status.param());
}

ErrorResponse HttpError(int http_status, std::string_view message) {
  Row row{http_status, http_status < 500 ? "invalid_request_error" : "server_error", nullptr, 0};
  if (http_status == 429 || http_status == 503) row.retry_after_seconds = 1;
  return Make(row, message, "");
}

}  // namespace holmes::api
