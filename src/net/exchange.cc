#include "net/exchange.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

namespace holmes::net {
namespace {

/// "Date: Tue, 01 Dec 2026 11:42:46 GMT\r\n", made once per second and thread.
const std::string& DateLine() {
  thread_local std::time_t made_at = -1;
  thread_local std::string line;
  const std::time_t now = std::time(nullptr);
  if (now != made_at) {
    std::tm utc{};
    gmtime_r(&now, &utc);
    char text[64];
    const std::size_t size =
        std::strftime(text, sizeof(text), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
    line.assign(text, size);
    made_at = now;
  }
  return line;
}

bool HasControl(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7F) return true;
  }
  return false;
}

}  // namespace

void AppendResponseHead(int status,
                        const Headers& headers,
                        std::string_view framing,
                        bool keep_alive,
                        bool http_1_1,
                        std::string& out) {
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", status, ReasonPhrase(status));
  out += DateLine();
  for (const Header& header : headers) {
    if (HasControl(header.name) || HasControl(header.value)) continue;
    out += header.name;
    out += ": ";
    out += header.value;
    out += "\r\n";
  }
  out += framing;
  if (!keep_alive) out += "Connection: close\r\n";
  if (keep_alive && !http_1_1) out += "Connection: keep-alive\r\n";
  out += "\r\n";
}

Exchange::Exchange(Traits traits, std::function<void()> wake)
    : traits_(std::move(traits)), wake_(std::move(wake)) {}

void Exchange::WakeLocked() {
  if (wake_sent_ || !wake_) return;
  wake_sent_ = true;
  wake_();
}

void Exchange::AppendHead(int status, const Headers& headers, std::string_view framing) {
  const bool stopping = wake_ && traits_.stopping != nullptr && traits_.stopping->load();
  keep_alive_ = keep_alive_ && !stopping;
  if (traits_.cors_origin.empty()) {
    AppendResponseHead(status, headers, framing, keep_alive_, traits_.http_1_1, pending_);
    return;
  }
  Headers all = headers;
  all.push_back({"Access-Control-Allow-Origin", traits_.cors_origin});
  AppendResponseHead(status, all, framing, keep_alive_, traits_.http_1_1, pending_);
}

bool Exchange::Send(int status, const Headers& headers, std::string_view body) {
  base::MutexLock lock(mu_);
  if (started_ || broken_ || !wake_) return false;
  started_ = true;
  finished_ = true;
  keep_alive_ = traits_.keep_alive;
  // RFC 9110, section 8.6: no Content-Length in a 204.
  const std::string framing =
      status == 204 ? std::string() : fmt::format("Content-Length: {}\r\n", body.size());
  AppendHead(status, headers, framing);
  if (!traits_.head && status != 204) pending_ += body;
  on_disconnect_ = nullptr;
  WakeLocked();
  return true;
}

bool Exchange::Start(int status, const Headers& headers) {
  base::MutexLock lock(mu_);
  if (started_ || broken_ || !wake_) return false;
  started_ = true;
  keep_alive_ = traits_.keep_alive && traits_.http_1_1;
  AppendHead(status, headers, traits_.http_1_1 ? "Transfer-Encoding: chunked\r\n" : "");
  WakeLocked();
  return true;
}

bool Exchange::Write(std::string_view piece) {
  base::MutexLock lock(mu_);
  if (!started_ || finished_ || broken_ || cut_ || !wake_) return false;
  if (piece.empty() || traits_.head) return true;  // an empty chunk would end the body
  if (pending_.size() + in_flight_ + piece.size() > traits_.max_unsent_bytes) {
    cut_ = true;
    overflowed_ = true;
    WakeLocked();
    return false;
  }
  if (traits_.http_1_1) fmt::format_to(std::back_inserter(pending_), "{:x}\r\n", piece.size());
  pending_ += piece;
  if (traits_.http_1_1) pending_ += "\r\n";
  WakeLocked();
  return true;
}

bool Exchange::Finish() {
  base::MutexLock lock(mu_);
  if (!started_ || finished_ || broken_ || cut_ || !wake_) return false;
  finished_ = true;
  if (traits_.http_1_1 && !traits_.head) pending_ += "0\r\n\r\n";
  on_disconnect_ = nullptr;
  WakeLocked();
  return true;
}

void Exchange::OnDisconnect(std::function<void()> callback) {
  {
    base::MutexLock lock(mu_);
    if (finished_) return;
    if (!broken_) {
      on_disconnect_ = std::move(callback);
      return;
    }
  }
  callback();
}

bool Exchange::broken() const {
  base::MutexLock lock(mu_);
  return broken_ || cut_;
}

void Exchange::Abandon() {
  base::MutexLock lock(mu_);
  if (finished_ || broken_ || cut_ || !wake_) return;
  if (started_) {
    cut_ = true;
    WakeLocked();
    return;
  }
  started_ = true;
  finished_ = true;
  keep_alive_ = false;
  const std::string body = JsonErrorBody(
      500, "The request was dropped without an answer; the server's log may say why.");
  AppendHead(500,
             {{"Content-Type", "application/json"}},
             fmt::format("Content-Length: {}\r\n", body.size()));
  if (!traits_.head) pending_ += body;
  on_disconnect_ = nullptr;
  WakeLocked();
}

std::string Exchange::TakeOutput() {
  base::MutexLock lock(mu_);
  wake_sent_ = false;
  in_flight_ += pending_.size();
  return std::exchange(pending_, {});
}

void Exchange::Written(std::size_t bytes) {
  base::MutexLock lock(mu_);
  in_flight_ -= bytes;
}

bool Exchange::finished() const {
  base::MutexLock lock(mu_);
  return finished_;
}

bool Exchange::keep_alive() const {
  base::MutexLock lock(mu_);
  return keep_alive_;
}

bool Exchange::must_cut() const {
  base::MutexLock lock(mu_);
  return cut_;
}

bool Exchange::overflowed() const {
  base::MutexLock lock(mu_);
  return overflowed_;
}

bool Exchange::PeerGone() {
  std::function<void()> callback;
  {
    base::MutexLock lock(mu_);
    if (finished_ || broken_) return false;
    broken_ = true;
    pending_.clear();
    callback = std::exchange(on_disconnect_, nullptr);
  }
  if (callback) callback();
  return true;
}

void Exchange::Detach() {
  std::function<void()> wake;
  base::MutexLock lock(mu_);
  std::swap(wake, wake_);
}

}  // namespace holmes::net
