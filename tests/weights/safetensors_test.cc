#include "weights/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/gguf_builder.h"

namespace holmes::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string File(std::string_view header, std::size_t data_bytes) {
  return ByteWriter()
      .Put<std::uint64_t>(header.size())
      .Raw(header)
      .Raw(std::string(data_bytes, 'd'))
      .bytes();
}
Status ParseStatus(const std::string& bytes) {
  return ParseSafetensors(BytesOf(bytes), "x.safetensors").status();
}
StatusCode Code(std::string_view header, std::size_t data_bytes) {
  return ParseStatus(File(header, data_bytes)).code();
}

TEST(SafetensorsTest, ReadsTensors) {
  const std::string bytes = File(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("ids":{"dtype":"I64","shape":[],"data_offsets":[20,28]},"none":{"dtype":"F16","shape":[0,4],"data_offsets":[28,28]}}   )",
      28);
  const auto entries = ParseSafetensors(BytesOf(bytes), "x.safetensors");
  ASSERT_TRUE(entries.ok()) << entries.status().ToString();
  ASSERT_EQ(entries->size(), 4u);
  EXPECT_EQ((*entries)[0].name, "b");
  EXPECT_EQ((*entries)[0].type, tensor::BlockType::kBF16);
  EXPECT_THAT((*entries)[0].shape, ElementsAre(2, 3));
  EXPECT_EQ((*entries)[0].bytes.size(), 12u);
  EXPECT_EQ((*entries)[1].type, tensor::BlockType::kF32);
  EXPECT_EQ((*entries)[2].type, std::nullopt);  // integers are checked, not offered
  EXPECT_THAT((*entries)[2].shape, IsEmpty());
  EXPECT_THAT((*entries)[3].bytes, IsEmpty());
}

TEST(SafetensorsTest, RefusesWhatIsNoSafetensors) {
  EXPECT_EQ(ParseStatus("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseStatus("short").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseStatus("this is a text file").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Code("[1,2]", 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(Code("", 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseStatus(ByteWriter().Put<std::uint64_t>(~0ull).Raw("{}").bytes()).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(
      ParseStatus(ByteWriter().Put<std::uint64_t>(kSafetensorsMaxHeaderBytes).Raw("{}").bytes())
          .code(),
      StatusCode::kDataLoss);
  EXPECT_EQ(Code("{}", 0), StatusCode::kOk);
}

TEST(SafetensorsTest, RefusesMalformedHeaders) {
  for (const std::string_view header :
       {"{",
        "{}x",
        R"({"a":1})",
        R"({"__metadata__":1})",
        R"({"a":{}})",
        R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})",
        R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})"}) {
    EXPECT_EQ(Code(header, 4), StatusCode::kDataLoss) << header;
  }
  std::string deep = R"({"__metadata__":{"a":)";
  for (int i = 0; i < 100000; ++i) deep += '[';
  EXPECT_EQ(Code(deep, 0), StatusCode::kDataLoss);
}

TEST(SafetensorsTest, RefusesSizesThatDoNotAgree) {
  EXPECT_EQ(Code(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
            StatusCode::kDataLoss);
  EXPECT_EQ(
      Code(R"({"a":{"dtype":"F32","shape":[4611686018427387904,2],"data_offsets":[0,0]}})", 0),
      StatusCode::kDataLoss);
  EXPECT_EQ(Code(R"({"a":{"dtype":"F32","shape":[9223372036854775807],"data_offsets":[0,4]}})", 4),
            StatusCode::kDataLoss);
  EXPECT_EQ(
      Code(R"({"a":{"dtype":"F32","shape":[4611686018427387904,2,0],"data_offsets":[0,0]}})", 0),
      StatusCode::kDataLoss);
}

TEST(SafetensorsTest, RefusesHolesOverlapsAndLeftovers) {
  const auto two = [](int a0, int a1, int b0, int b1, std::size_t data_bytes) {
    return Code(
        fmt::format(
            R"({{"a":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}},"b":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
            a1 - a0,
            a0,
            a1,
            b1 - b0,
            b0,
            b1),
        data_bytes);
  };
  EXPECT_EQ(two(0, 4, 4, 8, 8), StatusCode::kOk);
  EXPECT_EQ(two(4, 8, 0, 4, 8), StatusCode::kOk);
  EXPECT_EQ(two(0, 4, 5, 8, 8), StatusCode::kDataLoss);
  EXPECT_EQ(two(0, 5, 4, 8, 8), StatusCode::kDataLoss);
  EXPECT_EQ(two(0, 4, 0, 4, 4), StatusCode::kDataLoss);
  EXPECT_EQ(two(1, 4, 4, 8, 8), StatusCode::kDataLoss);
  EXPECT_EQ(two(0, 4, 4, 8, 9), StatusCode::kDataLoss);
  EXPECT_EQ(two(0, 4, 4, 8, 7), StatusCode::kDataLoss);
  // A name given twice leaves a hole where the range that lost was.
  EXPECT_EQ(
      Code(
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
          8),
      StatusCode::kDataLoss);
}

TEST(SafetensorsTest, RefusesFloatTypesThatAreNotReadByName) {
  const Status status =
      ParseStatus(File(R"({"w":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4));
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("F8_E4M3"));
  EXPECT_EQ(Code(R"({"w":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}})", 4),
            StatusCode::kUnimplemented);
}

TEST(SafetensorsTest, TruncationSaysHowMuchIsThere) {
  std::string bytes = File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  const std::size_t whole = bytes.size();
  for (std::size_t length = 0; length < whole; ++length) {
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(ParseSafetensors(BytesOf({cut.data(), cut.size()}), "x").ok()) << length;
  }
  bytes.pop_back();
  const std::string message(ParseStatus(bytes).message());
  EXPECT_THAT(message, HasSubstr(fmt::format("{} bytes of {}", whole - 1, whole)));
}

}  // namespace
}  // namespace holmes::weights
