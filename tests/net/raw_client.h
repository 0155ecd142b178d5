/// A socket that sends bytes as they are, for tests of what no client library would send.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace holmes::net {

/// Blocking, with a limit of 20 s on every read so that a broken server fails a test and does not
/// hang it.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    const timeval limit{20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void ShutdownSend() { shutdown(fd_, SHUT_WR); }

  /// False when the peer no longer takes bytes.
  bool SendBytes(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Everything until the peer closes.
  std::string ReadAll() {
    while (ReadSome()) {
    }
    return std::exchange(seen_, {});
  }

  /// Bytes up to and with `mark`; what there was when the peer closed before.
  std::string ReadUntil(std::string_view mark) {
    std::size_t at = 0;
    while ((at = seen_.find(mark)) == std::string::npos) {
      if (!ReadSome()) return std::exchange(seen_, {});
    }
    std::string out = seen_.substr(0, at + mark.size());
    seen_.erase(0, at + mark.size());
    return out;
  }

  /// One answer with Content-Length: head and body.
  std::string ReadAnswer() {
    std::string head = ReadUntil("\r\n\r\n");
    const std::size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    const std::size_t length = std::stoul(head.substr(at + 16));
    while (seen_.size() < length && ReadSome()) {
    }
    const std::string body = seen_.substr(0, length);
    seen_.erase(0, length);
    return head + body;
  }

  /// Sends all of `request` (which asks for Connection: close) and reads to the end.
  std::string Exchange(std::string_view request) {
    SendBytes(request);
    return ReadAll();
  }

 private:
  bool ReadSome() {
    char bytes[4096];
    const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
    if (got <= 0) return false;
    seen_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }
  int fd_;
  bool connected_ = false;
  std::string seen_;
};

}  // namespace holmes::net
