#include "net/http_server.h"

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/thread_pool.h"
#include "net/http_connection.h"

namespace holmes::net {
namespace {

using boost::system::error_code;
using Tcp = asio::ip::tcp;

/// Beyond max_connections, so many more may wait for their 503; the rest is closed at once.
constexpr std::size_t kMaxRefusing = 64;

Status CheckOptions(const HttpServerOptions& options) {
  if (options.io_threads < 1 || options.io_threads > 256) {
    return base::InvalidArgumentError(
        fmt::format("io_threads is {}, it must be 1 to 256", options.io_threads));
  }
  if (options.max_header_bytes < 1024 || options.max_header_bytes > (16U << 20)) {
    return base::InvalidArgumentError(fmt::format(
        "max_header_bytes is {}, it must be 1024 to 16777216", options.max_header_bytes));
  }
  return OkStatus();
}

Status ListenError(const error_code& error, const HttpServerOptions& options) {
  const std::string place = fmt::format("{}:{}", options.address, options.port);
  if (error == asio::error::address_in_use) {
    return base::AlreadyExistsError(
        fmt::format("cannot listen on {}: another program has the port; choose another one, or 0 "
                    "for any that is free",
                    place));
  }
  if (error == asio::error::access_denied) {
    return base::PermissionDeniedError(
        fmt::format("cannot listen on {}: no permission; ports below 1024 need a privilege, choose "
                    "a higher one",
                    place));
  }
  if (error == boost::system::errc::address_not_available) {
    return base::InvalidArgumentError(fmt::format(
        "cannot listen on {}: this machine has no such address; 0.0.0.0 means all", place));
  }
  return base::UnavailableError(fmt::format("cannot listen on {}: {}", place, error.message()));
}

class HttpServerImpl final : public HttpServer {
 public:
  HttpServerImpl(HttpServerOptions options, Handler handler)
      : io_(options.io_threads), accept_strand_(asio::make_strand(io_)), acceptor_(accept_strand_) {
    shared_.options = std::move(options);
    shared_.handler = std::move(handler);
  }

  ~HttpServerImpl() override { Stop(std::chrono::steady_clock::now()); }

  Status Listen() {
    const HttpServerOptions& options = shared_.options;
    error_code error;
    const auto address = asio::ip::make_address(
        options.address == "localhost" ? "127.0.0.1" : options.address, error);
    if (error) {
      return base::InvalidArgumentError(fmt::format(
          "'{}' is not an IP address to listen on; 127.0.0.1 is this machine only, 0.0.0.0 all",
          options.address));
    }
    const Tcp::endpoint endpoint(address, options.port);
    acceptor_.open(endpoint.protocol(), error);
    // Without this, a restart has to wait until the old connections' sockets have died out.
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    return error ? ListenError(error, options) : OkStatus();
  }

  void Start() override {
    HOLMES_CHECK(threads_.empty(), "HttpServer::Start is called once");
    {
      base::MutexLock lock(shared_.mu);
      accepting_ = true;
    }
    asio::co_spawn(
        accept_strand_,
        [this] { return Accept(); },
        [this](std::exception_ptr error) {
          if (error) base::LogError("accepting connections ended by an exception");
          base::MutexLock lock(shared_.mu);
          accepting_ = false;
          shared_.changed.NotifyAll();
        });
    for (int i = 0; i < shared_.options.io_threads; ++i) {
      threads_.emplace_back([this, i] {
        base::SetThreadName(fmt::format("io-{}", i));
        io_.run();
      });
    }
  }

  std::uint16_t port() const override { return port_; }

  bool Stop(std::chrono::steady_clock::time_point deadline) override {
    if (std::exchange(stopped_, true)) return true;
    shared_.stopping.store(true);
    bool clean = true;
    if (threads_.empty()) {
      error_code ignored;
      acceptor_.close(ignored);
    } else {
      asio::post(accept_strand_, [this] {
        error_code ignored;
        acceptor_.close(ignored);
      });
      clean = CloseConnections(deadline);
    }
    work_.reset();
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
    return clean;
  }

  HttpServerStats Stats() const override {
    HttpServerStats stats;
    stats.connections_accepted = shared_.accepted.load();
    stats.connections_refused = shared_.refused.load();
    stats.requests = shared_.requests.load();
    stats.bad_requests = shared_.bad_requests.load();
    stats.disconnects = shared_.disconnects.load();
    stats.slow_readers = shared_.slow_readers.load();
    base::MutexLock lock(shared_.mu);
    stats.connections_open = shared_.open.size();
    return stats;
  }

 private:
  /// Runs on accept_strand_ and ends when Stop closes the acceptor.
  asio::awaitable<void> Accept() {
    while (!shared_.stopping.load()) {
      error_code error;
      StrandSocket socket(asio::make_strand(io_.get_executor()));
      co_await acceptor_.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
      if (shared_.stopping.load()) co_return;
      if (error) {
        // Out of file descriptors, most likely: connections that end will free some.
        base::LogWarning("cannot accept a connection: {}", error.message());
        asio::steady_timer pause(accept_strand_, std::chrono::milliseconds(100));
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
        continue;
      }
      shared_.accepted.fetch_add(1);
      const std::size_t open = OpenConnections();
      const bool refuse = open >= shared_.options.max_connections;
      if (refuse) shared_.refused.fetch_add(1);
      if (open < shared_.options.max_connections + kMaxRefusing) {
        StartConnection(std::move(socket), shared_, refuse);
      }
    }
  }

  std::size_t OpenConnections() const {
    base::MutexLock lock(shared_.mu);
    return shared_.open.size();
  }

  bool CloseConnections(std::chrono::steady_clock::time_point deadline) {
    base::MutexLock lock(shared_.mu);
    while (accepting_) shared_.changed.Wait(shared_.mu);
    for (const auto& connection : shared_.open) connection->CloseWhenIdle();
    bool in_time = true;
    while (!shared_.open.empty() && in_time)
      in_time = shared_.changed.WaitUntil(shared_.mu, deadline);
    const bool clean = shared_.open.empty();
    for (const auto& connection : shared_.open) connection->CutNow();
    while (!shared_.open.empty()) shared_.changed.Wait(shared_.mu);
    return clean;
  }

  ServerShared shared_;  // before io_: connections that are destroyed with it refer to it
  asio::io_context io_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_{
      asio::make_work_guard(io_)};
  const Strand accept_strand_;  // owns acceptor_
  asio::basic_socket_acceptor<Tcp, Strand> acceptor_;
  std::vector<std::thread> threads_;
  std::uint16_t port_ = 0;
  bool stopped_ = false;
  bool accepting_ HOLMES_GUARDED_BY(shared_.mu) = false;
};

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Create(HttpServerOptions options,
                                                         Handler handler) {
  HOLMES_RETURN_IF_ERROR(CheckOptions(options));
  auto server = std::make_unique<HttpServerImpl>(std::move(options), std::move(handler));
  HOLMES_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace holmes::net
