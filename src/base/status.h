/// Status and StatusOr: the one way in which Holmes reports an error that somebody can act on.
///
/// Names and canonical codes are those of Abseil (https://abseil.io/docs/cpp/guides/status), so
/// that a later swap is mechanical. A message says what failed, with which value, against which
/// limit, and what to do. Thread rule: both are values; distinct objects may be used from distinct
/// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace holmes::base {

static_assert(__cplusplus >= 202002L, "Holmes is C++20; nvcc needs -std=c++20 as a CUDA option");

enum class StatusCode : std::uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// "INVALID_ARGUMENT" and so on.
std::string_view StatusCodeToString(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  /// A code of kOk drops the message.
  Status(StatusCode code, std::string message);

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  /// Empty when ok.
  std::string_view message() const { return rep_ ? std::string_view(rep_->message) : ""; }
  /// The request field that is at fault ("messages[2].content"), empty where there is none. `api`
  /// turns it into OpenAI's `param`.
  std::string_view param() const { return rep_ ? std::string_view(rep_->param) : ""; }
  /// The same status with the field at fault named.
  Status WithParam(std::string param) const;
  /// The same status with "`context`: " before its message.
  Status WithContext(std::string_view context) const;
  /// "OK" or "INVALID_ARGUMENT: message".
  std::string ToString() const;

  friend bool operator==(const Status& a, const Status& b) {
    return a.code() == b.code() && a.message() == b.message() && a.param() == b.param();
  }

 private:
  struct Rep {
    StatusCode code;
    std::string message;
    std::string param;
  };
  std::shared_ptr<const Rep> rep_;  // null when ok, shared and immutable otherwise
};

inline Status OkStatus() { return Status(); }
Status CancelledError(std::string message);
Status InvalidArgumentError(std::string message);
Status DeadlineExceededError(std::string message);
Status NotFoundError(std::string message);
Status AlreadyExistsError(std::string message);
Status PermissionDeniedError(std::string message);
Status ResourceExhaustedError(std::string message);
Status FailedPreconditionError(std::string message);
Status OutOfRangeError(std::string message);
Status UnimplementedError(std::string message);
Status InternalError(std::string message);
Status UnavailableError(std::string message);
Status DataLossError(std::string message);
/// A failed system call: `what` names the call and its object; the code follows errno (ENOENT ->
/// kNotFound, ENOSPC -> kResourceExhausted ...).
Status ErrnoError(int error, std::string_view what);

template <typename T>
class [[nodiscard]] StatusOr {
 public:
  using value_type = T;
  StatusOr(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    HOLMES_CHECK(!status_.ok(), "StatusOr made from an OK status has no value");
  }
  StatusOr(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  template <typename U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, Status> &&
           !std::is_same_v<std::remove_cvref_t<U>, StatusOr> &&
           !std::is_same_v<std::remove_cvref_t<U>, T>) StatusOr(U&& value)
      : value_(std::forward<U>(value)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  /// Precondition: ok(). Aborts with the status otherwise.
  T& value() & { return Require(), *value_; }
  const T& value() const& { return Require(), *value_; }
  T&& value() && { return Require(), *std::move(value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  template <typename U>
  T value_or(U&& other) const& {
    return ok() ? *value_ : static_cast<T>(std::forward<U>(other));
  }

 private:
  void Require() const { HOLMES_CHECK(ok(), status_.ToString()); }
  Status status_;
  std::optional<T> value_;
};

}  // namespace holmes::base

namespace holmes {
using base::OkStatus;
using base::Status;
using base::StatusCode;
using base::StatusOr;
}  // namespace holmes

#define HOLMES_RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                         \
    if (::holmes::Status holmes_status_ = (expr); !holmes_status_.ok()) return holmes_status_; \
  } while (false)

#define HOLMES_CONCAT_INNER_(a, b) a##b
#define HOLMES_CONCAT_(a, b) HOLMES_CONCAT_INNER_(a, b)
#define HOLMES_ASSIGN_OR_RETURN(lhs, expr) \
  HOLMES_ASSIGN_OR_RETURN_IMPL_(HOLMES_CONCAT_(holmes_status_or_, __LINE__), lhs, expr)
#define HOLMES_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return tmp.status();                 \
  lhs = *std::move(tmp)
