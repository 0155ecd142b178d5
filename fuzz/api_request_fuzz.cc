// Request bodies: any bytes give a request or an error, never more.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/errors.h"
#include "api/requests.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto check = [](const holmes::Status& status) {
    if (!status.ok()) static_cast<void>(holmes::api::ToErrorResponse(status));
  };
  check(holmes::api::ParseChatCompletionRequest(body).status());
  check(holmes::api::ParseCompletionRequest(body).status());
  check(holmes::api::ParseTokenizeRequest(body).status());
  check(holmes::api::ParseDetokenizeRequest(body).status());
  return 0;
}
