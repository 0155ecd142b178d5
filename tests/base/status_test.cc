#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace holmes::base {
namespace {

StatusOr<int> Half(int x) {
  if (x % 2 != 0) return InvalidArgumentError("odd");
  return x / 2;
}

StatusOr<int> Quarter(int x) {
  HOLMES_ASSIGN_OR_RETURN(const int half, Half(x));
  return Half(half);
}

TEST(StatusTest, DefaultIsOk) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().code(), StatusCode::kOk);
  EXPECT_EQ(Status().ToString(), "OK");
}

TEST(StatusTest, ContextAndParamKeepTheCode) {
  const Status status = NotFoundError("no such file").WithContext("model.gguf").WithParam("model");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "model.gguf: no such file");
  EXPECT_EQ(status.param(), "model");
}

TEST(StatusTest, ErrnoKeepsItsKind) {
  EXPECT_EQ(ErrnoError(ENOENT, "open x").code(), StatusCode::kNotFound);
  EXPECT_EQ(ErrnoError(ENOSPC, "write x").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoError(EADDRINUSE, "bind").code(), StatusCode::kAlreadyExists);
}

TEST(StatusOrTest, MacrosPropagate) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(6).status().code(), StatusCode::kInvalidArgument);
}

TEST(StatusOrTest, HoldsMoveOnlyValues) {
  StatusOr<std::unique_ptr<int>> made = std::make_unique<int>(7);
  ASSERT_TRUE(made.ok());
  const std::unique_ptr<int> taken = *std::move(made);
  EXPECT_EQ(*taken, 7);
}

TEST(StatusOrDeathTest, ValueOfAnErrorAborts) {
  const StatusOr<int> bad = InternalError("boom");
  EXPECT_DEATH(static_cast<void>(bad.value()), "boom");
}

}  // namespace
}  // namespace holmes::base
