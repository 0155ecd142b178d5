#include "net/request_parser.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

namespace holmes::net {

namespace http = boost::beast::http;

struct RequestParser::Impl {
  http::request_parser<http::string_body> parser;
  std::size_t max_header_bytes;
  std::size_t max_body_bytes;
};

namespace {

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Refusal RefusalOf(http::error error, std::size_t max_header_bytes, std::size_t max_body_bytes) {
  switch (error) {
    case http::error::header_limit:
      return {431,
              fmt::format("The request's headers are larger than {} bytes.", max_header_bytes)};
    case http::error::body_limit:
      return {413, fmt::format("The request's body is larger than {} bytes.", max_body_bytes)};
    case http::error::bad_version:
      return {400, "The request's HTTP version is not 1.0 or 1.1."};
    case http::error::bad_method:
      return {400, "The request line has no valid method."};
    case http::error::bad_target:
      return {400, "The request line has no valid target."};
    case http::error::bad_field:
    case http::error::bad_value:
    case http::error::bad_line_ending:
    case http::error::bad_obs_fold:
      return {400, "A header line is malformed."};
    case http::error::bad_content_length:
    case http::error::multiple_content_length:
      return {400, "Content-Length is not one number."};
    case http::error::bad_transfer_encoding:
      return {400, "Transfer-Encoding is malformed or stands beside Content-Length."};
    case http::error::bad_chunk:
    case http::error::bad_chunk_extension:
      return {400, "The chunked body is malformed: a chunk's size does not fit its data."};
    default:
      return {400, "The request is not HTTP/1.1."};
  }
}

}  // namespace

bool PercentDecode(std::string_view text, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return false;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return false;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

RequestParser::RequestParser(std::size_t max_header_bytes, std::size_t max_body_bytes)
    : impl_(std::make_unique<Impl>()) {
  impl_->max_header_bytes = max_header_bytes;
  impl_->max_body_bytes = max_body_bytes;
  impl_->parser.header_limit(static_cast<std::uint32_t>(max_header_bytes));
  impl_->parser.body_limit(max_body_bytes);
  impl_->parser.eager(true);
}

RequestParser::~RequestParser() = default;

std::size_t RequestParser::Put(std::string_view bytes) {
  // Beast asserts that the end of a chunked body is there whole once it has seen the last chunk's
  // size. No chunked body ends in fewer bytes than these, so waiting for them loses nothing.
  constexpr std::size_t kShortestChunkedEnd = 5;  // 0 CRLF CRLF
  if (header_done() && impl_->parser.chunked() && bytes.size() < kShortestChunkedEnd) return 0;
  boost::beast::error_code error;
  const std::size_t used =
      impl_->parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error == http::error::need_more) error = {};
  if (error) {
    refusal_ = RefusalOf(
        static_cast<http::error>(error.value()), impl_->max_header_bytes, impl_->max_body_bytes);
    return used;
  }
  if (impl_->parser.is_header_done() && !std::exchange(header_checked_, true)) CheckHeader();
  return used;
}

void RequestParser::CheckHeader() {
  const auto& message = impl_->parser.get();
  const auto hosts = message.equal_range(http::field::host);
  const auto num_hosts = std::distance(hosts.first, hosts.second);
  if (num_hosts > 1 || (message.version() == 11 && num_hosts == 0)) {
    refusal_ = {400, "An HTTP/1.1 request has exactly one Host header."};
    return;
  }
  const auto encoding = message.find(http::field::transfer_encoding);
  if (encoding != message.end() &&
      (message.version() == 10 || message.count(http::field::transfer_encoding) > 1 ||
       !EqualsIgnoreCase(View(encoding->value()), "chunked"))) {
    refusal_ = {501, "The only Transfer-Encoding that this server takes is chunked, in HTTP/1.1."};
    return;
  }
  const auto expect = message.find(http::field::expect);
  if (expect != message.end() && !EqualsIgnoreCase(View(expect->value()), "100-continue")) {
    refusal_ = {417, "The only expectation that this server meets is 100-continue."};
  }
}

bool RequestParser::header_done() const { return impl_->parser.is_header_done(); }
bool RequestParser::done() const { return impl_->parser.is_done(); }
bool RequestParser::keep_alive() const { return impl_->parser.get().keep_alive(); }

bool RequestParser::wants_continue() const {
  const auto& message = impl_->parser.get();
  return message.version() == 11 && message.count(http::field::expect) > 0;
}

HttpRequest RequestParser::Take() {
  auto message = impl_->parser.release();
  HttpRequest request;
  request.method = View(message.method_string());
  request.target = View(message.target());
  request.version = static_cast<int>(message.version());
  for (const auto& field : message) {
    request.headers.push_back(
        {std::string(View(field.name_string())), std::string(View(field.value()))});
  }
  request.body = std::move(message.body());
  std::string_view path = request.target;
  if (const std::size_t scheme = path.find("://");
      scheme != std::string_view::npos && !path.starts_with('/')) {
    const std::size_t slash = path.find('/', scheme + 3);
    path = slash == std::string_view::npos ? "/" : path.substr(slash);
  }
  path = path.substr(0, path.find('#'));
  if (const std::size_t mark = path.find('?'); mark != std::string_view::npos) {
    request.query = path.substr(mark + 1);
    path = path.substr(0, mark);
  }
  if (!PercentDecode(path, request.path)) {
    refusal_ = {400, "The request's target has a wrong percent escape."};
  }
  return request;
}

}  // namespace holmes::net
