/// One request's answer on its way from any thread to its connection. Private to net.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "net/http_types.h"

namespace holmes::net {

/// Thread-safe. Invariants: after the first of finished and broken, nothing more is queued; the
/// disconnect callback runs at most once and only if broken came first.
class Exchange {
 public:
  struct Traits {
    bool http_1_1 = true;
    bool head = false;       // answer without its body
    bool keep_alive = true;  // what the request asks for
    std::size_t max_unsent_bytes = 0;
    std::string cors_origin;
    const std::atomic<bool>* stopping =
        nullptr;  // read while attached: answers then close their connection
  };
  /// `wake` tells the connection that there is something to do. It is called with the lock held,
  /// never after Detach.
  Exchange(Traits traits, std::function<void()> wake);

  bool Send(int status, const Headers& headers, std::string_view body);
  bool Start(int status, const Headers& headers);
  bool Write(std::string_view piece);
  bool Finish();
  void OnDisconnect(std::function<void()> callback);
  bool broken() const;
  /// The handler let go of its writer.
  void Abandon();

  // The connection's side, called on its strand.

  /// Everything queued since the last call.
  std::string TakeOutput();
  void Written(std::size_t bytes);
  bool finished() const;
  bool keep_alive() const;
  /// A slow reader or an answer given up half way: the connection must be cut.
  bool must_cut() const;
  bool overflowed() const;
  /// Marks the exchange broken unless it finished, and runs the callback. True when it was not
  /// finished.
  bool PeerGone();
  /// No wake after this returns.
  void Detach();

 private:
  void WakeLocked() HOLMES_REQUIRES(mu_);
  void AppendHead(int status, const Headers& headers, std::string_view framing)
      HOLMES_REQUIRES(mu_);

  const Traits traits_;
  mutable base::Mutex mu_;
  std::function<void()> wake_ HOLMES_GUARDED_BY(mu_);
  std::function<void()> on_disconnect_ HOLMES_GUARDED_BY(mu_);
  std::string pending_ HOLMES_GUARDED_BY(mu_);
  std::size_t in_flight_ HOLMES_GUARDED_BY(mu_) = 0;
  bool wake_sent_ HOLMES_GUARDED_BY(mu_) = false;
  bool started_ HOLMES_GUARDED_BY(mu_) = false;
  bool finished_ HOLMES_GUARDED_BY(mu_) = false;
  bool broken_ HOLMES_GUARDED_BY(mu_) = false;
  bool cut_ HOLMES_GUARDED_BY(mu_) = false;
  bool overflowed_ HOLMES_GUARDED_BY(mu_) = false;
  bool keep_alive_ HOLMES_GUARDED_BY(mu_) = false;
};

/// The start line and headers of an answer, ending in an empty line. `framing` is complete header
/// lines. Headers whose name or value holds a control character are dropped: they would forge
/// others.
void AppendResponseHead(int status,
                        const Headers& headers,
                        std::string_view framing,
                        bool keep_alive,
                        bool http_1_1,
                        std::string& out);

}  // namespace holmes::net
