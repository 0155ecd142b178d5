#include "weights/json_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/parser.hpp>
#include <cerrno>
#include <limits>
#include <utility>

namespace holmes::weights {

namespace json = boost::json;

StatusOr<json::value> ParseJson(std::string_view text, std::string_view file_name) {
  json::parse_options options;
  options.max_depth = kJsonMaxDepth;
  json::parser parser({}, options);
  json::error_code error;
  const std::size_t parsed = parser.write(text.data(), text.size(), error);
  if (error) {
    return base::DataLossError(fmt::format(
        "{}: byte {}: not valid JSON ({}); download it again", file_name, parsed, error.message()));
  }
  return parser.release();
}

StatusOr<std::string> ReadSmallFile(const std::string& path, std::uint64_t max_bytes) {
  const int fd = ::open(
      path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a named pipe must not wait for a writer
  if (fd < 0) return base::ErrnoError(errno, fmt::format("open {}", path));
  const auto read_all = [&]() -> StatusOr<std::string> {
    struct stat info = {};
    if (::fstat(fd, &info) != 0) return base::ErrnoError(errno, fmt::format("stat {}", path));
    if (!S_ISREG(info.st_mode))
      return base::InvalidArgumentError(fmt::format("{}: not a regular file", path));
    if (static_cast<std::uint64_t>(info.st_size) > max_bytes) {
      return base::ResourceExhaustedError(
          fmt::format("{}: {} bytes, at most {} are read", path, info.st_size, max_bytes));
    }
    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t filled = 0;
    while (filled < text.size()) {
      const ssize_t got = ::read(fd, text.data() + filled, text.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return base::ErrnoError(errno, fmt::format("read {}", path));
      if (got == 0) break;  // shrank meanwhile
      filled += static_cast<std::size_t>(got);
    }
    text.resize(filled);
    return text;
  };
  StatusOr<std::string> text = read_all();
  ::close(fd);
  return text;
}

const json::value* FindPath(const json::value& root, std::string_view path) {
  const json::value* at = &root;
  while (true) {
    const json::object* const object = at->if_object();
    if (object == nullptr) return nullptr;
    if (const json::value* const whole = object->if_contains(path)) return whole;
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return nullptr;
    at = object->if_contains(path.substr(0, dot));
    if (at == nullptr) return nullptr;
    path.remove_prefix(dot + 1);
  }
}

std::optional<std::int64_t> AsCount(const json::value& value) {
  if (const std::int64_t* const number = value.if_int64()) {
    return *number >= 0 ? std::optional(*number) : std::nullopt;
  }
  return std::nullopt;  // Boost.JSON holds as uint64 only what int64 cannot
}

std::optional<double> AsNumber(const json::value& value) {
  if (const auto* const number = value.if_int64()) return static_cast<double>(*number);
  if (const auto* const number = value.if_uint64()) return static_cast<double>(*number);
  if (const auto* const number = value.if_double()) return *number;
  return std::nullopt;
}

}  // namespace holmes::weights
