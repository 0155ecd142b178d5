#include "weights/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace holmes::weights {
namespace {

/// Closes a descriptor at the end of the scope; the mapping does not need it any more.
class ScopedFd {
 public:
  explicit ScopedFd(int fd) : fd_(fd) {}
  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;
  ~ScopedFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

int ToMadvise(AccessPattern pattern) {
  switch (pattern) {
    case AccessPattern::kNormal:
      return MADV_NORMAL;
    case AccessPattern::kSequential:
      return MADV_SEQUENTIAL;
    case AccessPattern::kRandom:
      return MADV_RANDOM;
    case AccessPattern::kWillNeed:
      return MADV_WILLNEED;
  }
  return MADV_NORMAL;
}

}  // namespace

StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer; it has no effect on regular files.
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return base::ErrnoError(errno, fmt::format("open {}", path));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return base::ErrnoError(errno, fmt::format("stat {}", path));
  if (!S_ISREG(info.st_mode)) {
    return base::InvalidArgumentError(fmt::format("{}: not a regular file", path));
  }
  MappedFile file;
  file.path_ = path;
  if (info.st_size == 0) return file;  // mmap refuses a length of zero
  if (static_cast<std::uint64_t>(info.st_size) > std::numeric_limits<std::size_t>::max()) {
    return base::ResourceExhaustedError(
        fmt::format("{}: {} bytes do not fit the address space", path, info.st_size));
  }
  const std::size_t size = static_cast<std::size_t>(info.st_size);
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED)
    return base::ErrnoError(errno, fmt::format("map {} ({} bytes)", path, size));
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = size;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    Release();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() { Release(); }

void MappedFile::Release() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  data_ = nullptr;
  size_ = 0;
}

Status MappedFile::Advise(AccessPattern pattern, std::size_t offset, std::size_t length) const {
  if (offset >= size_ || length == 0) return OkStatus();
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = offset / page * page;
  const std::size_t end = offset + std::min(length, size_ - offset);
  void* const address = const_cast<std::byte*>(data_) + begin;
  if (::madvise(address, end - begin, ToMadvise(pattern)) != 0) {
    return base::ErrnoError(errno, fmt::format("madvise {}", path_));
  }
  return OkStatus();
}

}  // namespace holmes::weights
