#include "net/http_connection.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "net/exchange.h"
#include "net/request_parser.h"

namespace holmes::net {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;
using boost::system::error_code;
using StrandTimer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                               asio::wait_traits<std::chrono::steady_clock>,
                                               Strand>;

constexpr std::size_t kReadBytes = 16 << 10;
/// A closing connection still reads for so long, so that the answer is not lost in the reset that
/// unread bytes would cause.
constexpr std::chrono::seconds kLinger{2};
constexpr std::size_t kMaxLingerBytes = 256 << 20;

TimePoint Now() { return std::chrono::steady_clock::now(); }

/// What a handler holds. Letting go of the last one unfinished gives the exchange up.
class WriterHandle final : public ResponseWriter {
 public:
  explicit WriterHandle(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~WriterHandle() override { exchange_->Abandon(); }
  bool Send(int status, Headers headers, std::string_view body) override {
    return exchange_->Send(status, headers, body);
  }
  bool Start(int status, Headers headers) override { return exchange_->Start(status, headers); }
  bool Write(std::string_view piece) override { return exchange_->Write(piece); }
  bool Finish() override { return exchange_->Finish(); }
  void OnDisconnect(std::function<void()> callback) override {
    exchange_->OnDisconnect(std::move(callback));
  }
  bool disconnected() const override { return exchange_->broken(); }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

/// Lives through shared pointers held by its pending operations. All members belong to the strand.
class Connection final : public Stoppable, public std::enable_shared_from_this<Connection> {
 public:
  Connection(StrandSocket socket, ServerShared& shared)
      : shared_(shared),
        socket_(std::move(socket)),
        strand_(socket_.get_executor()),
        wake_timer_(strand_) {
    error_code ignored;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    const auto peer = socket_.remote_endpoint(ignored);
    if (!ignored) remote_ = peer.address().to_string() + ":" + std::to_string(peer.port());
  }

  asio::awaitable<void> Run(bool refuse) {
    StartRead();
    if (refuse) {
      // Named, as g++ 12 destroys such a temporary of a co_await expression twice.
      Refusal refusal{503, "The server has as many connections as it takes; try again later."};
      co_await Refuse(std::move(refusal));
    } else {
      while (co_await ServeOne()) {
      }
    }
    error_code ignored;
    socket_.close(ignored);
  }

  void CloseWhenIdle() override {
    asio::post(strand_, [self = shared_from_this()] { self->Wake(); });
  }
  void CutNow() override {
    asio::post(strand_, [self = shared_from_this()] {
      self->cut_ = true;
      self->Wake();
    });
  }

  const Strand& strand() const { return strand_; }

 private:
  std::size_t max_input() const { return shared_.options.max_header_bytes + kReadBytes; }

  void Wake() { wake_timer_.cancel(); }

  /// Suspends until Wake or `deadline`; may also return for no reason, so conditions are checked
  /// again.
  asio::awaitable<void> WaitUntil(TimePoint deadline) {
    error_code ignored;
    wake_timer_.expires_at(deadline);
    co_await wake_timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  /// Keeps one read pending while there is room, also while a request is answered: that is how a
  /// vanished peer is seen.
  void StartRead() {
    if (reading_ || eof_ || (!discard_ && input_.size() >= max_input())) return;
    reading_ = true;
    const std::size_t room =
        discard_ ? kReadBytes : std::min(kReadBytes, max_input() - input_.size());
    read_buffer_.resize(room);
    socket_.async_read_some(asio::buffer(read_buffer_),
                            [self = shared_from_this()](error_code error, std::size_t bytes) {
                              self->reading_ = false;
                              if (error) self->eof_ = true;
                              if (self->discard_) {
                                self->discarded_bytes_ += bytes;
                              } else {
                                self->input_.append(self->read_buffer_.data(), bytes);
                              }
                              self->Wake();
                              self->StartRead();
                            });
  }

  /// Sends all that is queued in one call; what queues up meanwhile leaves in the next.
  void StartWrite() {
    if (writing_ || write_failed_) return;
    if (exchange_) output_ += exchange_->TakeOutput();
    if (output_.empty()) return;
    writing_ = true;
    written_ = 0;
    last_progress_ = Now();
    ContinueWrite();
  }

  void ContinueWrite() {
    const auto rest = asio::buffer(output_.data() + written_, output_.size() - written_);
    socket_.async_write_some(rest,
                             [self = shared_from_this()](error_code error, std::size_t bytes) {
                               self->last_progress_ = Now();
                               self->written_ += bytes;
                               if (self->exchange_) self->exchange_->Written(bytes);
                               if (!error && self->written_ < self->output_.size()) {
                                 self->ContinueWrite();
                                 return;
                               }
                               self->write_failed_ = static_cast<bool>(error);
                               self->writing_ = false;
                               self->output_.clear();
                               if (self->output_.capacity() > kReadBytes * 4)
                                 self->output_.shrink_to_fit();
                               self->Wake();
                             });
  }

  /// False when the connection is at its end.
  asio::awaitable<bool> ServeOne() {
    const TimePoint idle_deadline = Now() + shared_.options.idle_timeout;
    while (input_.empty()) {
      if (eof_ || cut_ || shared_.stopping.load() || Now() >= idle_deadline) co_return false;
      co_await WaitUntil(idle_deadline);
    }
    RequestParser parser(shared_.options.max_header_bytes, shared_.options.max_body_bytes);
    std::optional<Refusal> refusal = co_await ReadRequest(parser);
    if (cut_) co_return false;
    HttpRequest request;
    const bool keep_alive = parser.keep_alive();
    if (!refusal) {
      request = parser.Take();
      if (parser.refusal().status != 0) refusal = parser.refusal();
    }
    if (refusal) {
      if (refusal->status != 0) {
        shared_.bad_requests.fetch_add(1);
        co_await Refuse(std::move(*refusal));
      }
      co_return false;
    }
    request.remote = remote_;
    co_return co_await Answer(std::move(request), keep_alive);
  }

  /// Nothing when the request is whole; a refusal of status 0 when the peer left or never finished
  /// its headers' first line.
  asio::awaitable<std::optional<Refusal>> ReadRequest(RequestParser& parser) {
    TimePoint deadline = Now() + shared_.options.header_timeout;
    bool continued = false;
    while (true) {
      const std::size_t used = parser.Put(input_);
      input_.erase(0, used);
      StartRead();
      if (parser.refusal().status != 0) co_return parser.refusal();
      if (parser.done()) co_return std::nullopt;
      if (used > 0 && parser.header_done()) deadline = Now() + shared_.options.body_timeout;
      if (parser.header_done() && !std::exchange(continued, true) && parser.wants_continue()) {
        output_ += "HTTP/1.1 100 Continue\r\n\r\n";
        StartWrite();
      }
      if (used > 0 && !input_.empty()) continue;
      if (input_.size() >= max_input()) {
        co_return Refusal{431, "A line of the request is larger than the limit of its headers."};
      }
      const std::size_t had = input_.size();
      while (input_.size() == had) {
        if (cut_) co_return Refusal{};
        if (eof_) {
          // Whoever is half way through a request and only stopped sending can still read why it
          // was no request.
          co_return Refusal{400, "The request ended before it was complete."};
        }
        if (Now() >= deadline)
          co_return Refusal{408, "The rest of the request did not arrive in time."};
        co_await WaitUntil(deadline);
      }
    }
  }

  asio::awaitable<bool> Answer(HttpRequest request, bool keep_alive) {
    shared_.requests.fetch_add(1);
    Exchange::Traits traits;
    traits.http_1_1 = request.version == 11;
    traits.head = request.method == "HEAD";
    traits.keep_alive = keep_alive;
    traits.max_unsent_bytes = shared_.options.max_unsent_bytes;
    traits.cors_origin = shared_.options.cors_origin;
    traits.stopping = &shared_.stopping;
    exchange_ = std::make_shared<Exchange>(std::move(traits), [self = shared_from_this()] {
      asio::post(self->strand_, [self] { self->Wake(); });
    });
    CallHandler(std::move(request));
    const bool whole = co_await SendAnswer();
    if (!whole && exchange_->PeerGone()) shared_.disconnects.fetch_add(1);
    exchange_->Detach();
    const bool go_on = whole && exchange_->keep_alive();
    exchange_.reset();
    if (whole && !go_on) co_await Linger();
    co_return go_on;
  }

  void CallHandler(HttpRequest request) {
    try {
      shared_.handler(std::move(request), std::make_shared<WriterHandle>(exchange_));
    } catch (const std::exception& error) {
      base::LogError("a request handler threw: {}", error.what());
    }
  }

  /// True when the whole answer is in the kernel's hands.
  asio::awaitable<bool> SendAnswer() {
    while (true) {
      StartWrite();
      if (exchange_->must_cut()) {
        if (exchange_->overflowed()) shared_.slow_readers.fetch_add(1);
        co_return false;
      }
      const bool finished = exchange_->finished();
      if (write_failed_ || cut_ || (eof_ && !finished)) co_return false;
      if (finished && !writing_) {
        StartWrite();  // finished after the StartWrite above
        if (!writing_) co_return true;
      }
      TimePoint deadline = TimePoint::max();
      if (writing_) {
        deadline = last_progress_ + shared_.options.write_timeout;
        if (Now() >= deadline) co_return false;
      }
      co_await WaitUntil(deadline);
    }
  }

  asio::awaitable<void> Refuse(Refusal refusal) {
    const std::string body = shared_.options.error_body(refusal.status, refusal.message);
    Headers headers{{"Content-Type", "application/json"}};
    if (refusal.status == 503) headers.push_back({"Retry-After", "1"});
    if (!shared_.options.cors_origin.empty()) {
      headers.push_back({"Access-Control-Allow-Origin", shared_.options.cors_origin});
    }
    AppendResponseHead(refusal.status,
                       headers,
                       "Content-Length: " + std::to_string(body.size()) + "\r\n",
                       false,
                       true,
                       output_queue_);
    output_queue_ += body;
    // A "100 Continue" may still be on its way out.
    const TimePoint deadline = Now() + kLinger;
    while (writing_ && !cut_ && Now() < deadline) co_await WaitUntil(deadline);
    if (writing_ || cut_) co_return;
    output_ = std::exchange(output_queue_, {});
    StartWrite();
    co_await Linger();
  }

  /// Finishes the write, says that nothing more comes, and reads what the peer still sends for a
  /// while.
  asio::awaitable<void> Linger() {
    discard_ = true;
    input_.clear();
    StartRead();
    const TimePoint deadline = Now() + kLinger;
    bool shut = false;
    while (!cut_ && Now() < deadline && discarded_bytes_ < kMaxLingerBytes) {
      if (!writing_ && !std::exchange(shut, true)) {
        error_code ignored;
        socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
      }
      if (shut && eof_) break;
      co_await WaitUntil(deadline);
    }
  }

  ServerShared& shared_;
  StrandSocket socket_;
  const Strand strand_;
  StrandTimer wake_timer_;
  std::string remote_;
  std::shared_ptr<Exchange> exchange_;  // of the request being answered

  std::string input_;  // read and not yet parsed
  std::string read_buffer_;
  bool reading_ = false;
  bool eof_ = false;
  bool discard_ = false;
  std::size_t discarded_bytes_ = 0;

  std::string output_;        // being written
  std::string output_queue_;  // a refusal that waits for it
  std::size_t written_ = 0;
  bool writing_ = false;
  bool write_failed_ = false;
  TimePoint last_progress_{};

  bool cut_ = false;
};

}  // namespace

void StartConnection(StrandSocket socket, ServerShared& shared, bool refuse) {
  auto connection = std::make_shared<Connection>(std::move(socket), shared);
  {
    base::MutexLock lock(shared.mu);
    shared.open.insert(connection);
  }
  asio::co_spawn(
      connection->strand(),
      [connection, refuse] { return connection->Run(refuse); },
      [connection, &shared](std::exception_ptr error) {
        if (error) base::LogError("a connection ended by an exception");
        base::MutexLock lock(shared.mu);
        shared.open.erase(connection);
        shared.changed.NotifyAll();
      });
}

}  // namespace holmes::net
