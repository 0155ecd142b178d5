// A request parsed whole and parsed in two pieces is the same request or the same refusal.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "net/request_parser.h"

namespace {

using holmes::net::RequestParser;

/// What became of the bytes, as one text.
std::string Outcome(std::string_view bytes, std::size_t cut) {
  RequestParser parser(2048, 4096);
  std::string input;
  for (const std::string_view piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
    input += piece;
    std::size_t used = 1;
    while (used > 0 && !input.empty() && !parser.done() && parser.refusal().status == 0) {
      used = parser.Put(input);
      HOLMES_CHECK(used <= input.size());
      input.erase(0, used);
    }
  }
  if (parser.refusal().status != 0 || !parser.done()) return "no request";
  const auto request = parser.Take();
  HOLMES_CHECK(request.body.size() <= 4096);
  return request.method + " " + request.path + "?" + request.query + " " + request.body + " " +
         input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = Outcome(bytes, bytes.size());
  const std::string cut = Outcome(bytes, bytes.size() * data[0] / 256);
  // How early a fault is seen may depend on the cut; whether it is a request, and which, may not.
  HOLMES_CHECK(whole == cut);
  return 0;
}
