/// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace holmes::weights {

/// How the kernel should read ahead.
enum class AccessPattern : std::uint8_t { kNormal, kSequential, kRandom, kWillNeed };

/// Owns one mapping; movable. Thread-safe after Open, since nothing changes.
///
/// The size is taken once, at Open. Another process that truncates the file afterwards makes any
/// access behind the new end raise SIGBUS: replace a model in use by rename, never in place. A file
/// that grows is seen as it was.
class MappedFile {
 public:
  /// Errors: kNotFound, kPermissionDenied, kInvalidArgument for anything but a regular file (a
  /// folder, a pipe), others by errno. An empty file opens and has no bytes.
  static StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  /// Tells the kernel how the bytes [offset, offset + length) will be read; cut to the file,
  /// widened to whole pages. A hint only: where the kernel declines, the status says so and nothing
  /// else changes.
  Status Advise(AccessPattern pattern, std::size_t offset, std::size_t length) const;

 private:
  void Release();

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace holmes::weights
