/// The life of one accepted connection. Private to net; the only header of it that names Asio.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <cstdint>
#include <memory>
#include <unordered_set>

#include "base/mutex.h"
#include "net/http_server.h"

namespace holmes::net {

namespace asio = boost::asio;
/// Every handler of one connection runs on its strand, so that its state needs no lock.
using Strand = asio::strand<asio::io_context::executor_type>;
using StrandSocket = asio::basic_stream_socket<asio::ip::tcp, Strand>;

/// What Stop says to each open connection. Thread-safe.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  /// Ends once nothing is being answered.
  virtual void CloseWhenIdle() = 0;
  /// Ends now; a running request is told that its peer is gone.
  virtual void CutNow() = 0;
};

/// What a server's connections share. Outlives them.
struct ServerShared {
  HttpServerOptions options;
  Handler handler;
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> bad_requests{0};
  std::atomic<std::uint64_t> disconnects{0};
  std::atomic<std::uint64_t> slow_readers{0};

  mutable base::Mutex mu;
  base::CondVar changed;  // when `open` shrinks
  std::unordered_set<std::shared_ptr<Stoppable>> open HOLMES_GUARDED_BY(mu);
};

/// Takes the socket over; the connection registers in shared.open until it ends. With `refuse`, it
/// answers 503 and closes.
void StartConnection(StrandSocket socket, ServerShared& shared, bool refuse);

}  // namespace holmes::net
