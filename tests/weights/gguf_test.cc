#include "weights/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "weights/gguf_builder.h"

namespace holmes::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status ParseStatus(const std::string& bytes) {
  return GgufFile::Parse(BytesOf(bytes), "x.gguf").status();
}

TEST(GgufTest, ReadsEveryKindOfValue) {
  GgufBuilder builder;
  const auto entry = [&](std::string_view key, GgufType type, auto value) {
    builder.Entry(key, type, ByteWriter().Put(value).bytes());
  };
  entry("u8", GgufType::kUint8, std::uint8_t{200});
  entry("i8", GgufType::kInt8, std::int8_t{-3});
  entry("u16", GgufType::kUint16, std::uint16_t{60000});
  entry("i16", GgufType::kInt16, std::int16_t{-300});
  entry("i32", GgufType::kInt32, std::int32_t{-70000});
  entry("u64", GgufType::kUint64, std::uint64_t{1} << 40);
  entry("u64max", GgufType::kUint64, std::numeric_limits<std::uint64_t>::max());
  entry("i64", GgufType::kInt64, -(std::int64_t{1} << 40));
  entry("f64", GgufType::kFloat64, 0.1);
  builder.Uint32("u32", 4000000000u)
      .Float32("f32", 1.5f)
      .Bool("yes", true)
      .String("text", "héllo")
      .Int32s("ints", {1, -2})
      .Strings("strings", {"", "x"});
  const std::string bytes = builder.Build();
  const auto file = GgufFile::Parse(BytesOf(bytes), "x.gguf");
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->Find("u8")->Number(), 200);
  EXPECT_EQ(file->Find("i8")->Integer(), -3);
  EXPECT_EQ(file->Find("u16")->Integer(), 60000);
  EXPECT_EQ(file->Find("i16")->Number(), -300);
  EXPECT_EQ(file->Find("i32")->Integer(), -70000);
  EXPECT_EQ(file->Find("u32")->Integer(), 4000000000);
  EXPECT_EQ(file->Find("u64")->Integer(), std::int64_t{1} << 40);
  EXPECT_EQ(file->Find("u64max")->Integer(), std::nullopt);
  EXPECT_EQ(file->Find("i64")->Number(), -1099511627776.0);
  EXPECT_EQ(file->Find("f32")->Number(), 1.5);
  EXPECT_EQ(file->Find("f32")->Integer(), std::nullopt);
  EXPECT_EQ(file->Find("f64")->Number(), 0.1);
  EXPECT_EQ(file->Find("yes")->Bool(), true);
  EXPECT_EQ(file->Find("yes")->Number(), std::nullopt);
  EXPECT_EQ(file->Find("u8")->Bool(), std::nullopt);
  EXPECT_EQ(file->Find("text")->String(), "héllo");
  EXPECT_THAT(*file->Find("ints")->Numbers(), ElementsAre(1, -2));
  EXPECT_EQ(file->Find("ints")->Number(), std::nullopt);
  EXPECT_THAT(*file->Find("strings")->Strings(), ElementsAre("", "x"));
  EXPECT_EQ(file->Find("strings")->Numbers(), std::nullopt);
  EXPECT_EQ(file->Find("absent"), nullptr);
}

TEST(GgufTest, PlacesTensors) {
  for (const std::uint32_t version : {2u, 3u}) {
    GgufBuilder builder = SmallGguf();
    builder.version = version;
    const std::string bytes = builder.Build();
    const auto file = GgufFile::Parse(BytesOf(bytes), "x.gguf");
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    ASSERT_EQ(file->tensors().size(), 2u);
    const GgufTensor& second = file->tensors()[1];
    EXPECT_EQ(second.name, "w.weight");
    EXPECT_THAT(second.dims, ElementsAre(32, 3));
    EXPECT_EQ(second.bytes.size(), 34u * 3);
    EXPECT_EQ(second.bytes[0], std::byte{'y'});
    EXPECT_EQ(file->data_offset() % 32, 0u);
  }
}

TEST(GgufTest, HonoursAlignment) {
  GgufBuilder builder;
  builder.alignment = 64;
  builder.Uint32("general.alignment", 64)
      .Tensor({"a", {3}, 0, std::string(12, 'a')})
      .Tensor({"b", {1}, 0, "bbbb"});
  const std::string bytes = builder.Build();
  const auto file = GgufFile::Parse(BytesOf(bytes), "x.gguf");
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->data_offset() % 64, 0u);
  EXPECT_EQ(file->tensors()[1].bytes[0], std::byte{'b'});
  for (const std::uint32_t bad : {0u, 7u, 48u, 1u << 21}) {
    EXPECT_EQ(ParseStatus(GgufBuilder().Uint32("general.alignment", bad).Build()).code(),
              StatusCode::kDataLoss)
        << bad;
  }
  EXPECT_EQ(ParseStatus(GgufBuilder().String("general.alignment", "32").Build()).code(),
            StatusCode::kDataLoss);
}

TEST(GgufTest, RefusesWhatIsNoGguf) {
  EXPECT_EQ(ParseStatus("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseStatus("hello, I am a text file").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseStatus("GG").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseStatus("GGUF").code(), StatusCode::kDataLoss);
}

TEST(GgufTest, RefusesVersionsByName) {
  GgufBuilder builder = SmallGguf();
  builder.version = 1;
  EXPECT_EQ(ParseStatus(builder.Build()).code(), StatusCode::kUnimplemented);
  builder.version = 4;
  EXPECT_EQ(ParseStatus(builder.Build()).code(), StatusCode::kUnimplemented);
  builder.version = 3u << 24;
  const Status status = ParseStatus(builder.Build());
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("big-endian"));
}

TEST(GgufTest, RefusesTensorTypesByName) {
  const Status iq =
      ParseStatus(GgufBuilder().Tensor({"t", {256}, 23, std::string(200, 0)}).Build());
  EXPECT_EQ(iq.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(iq.message()), HasSubstr("IQ4_XS"));
  EXPECT_EQ(ParseStatus(GgufBuilder().Tensor({"t", {256}, 999, ""}).Build()).code(),
            StatusCode::kUnimplemented);
}

TEST(GgufTest, ChecksIntegerTensorsWithoutOfferingThem) {
  const std::string bytes = GgufBuilder().Tensor({"ids", {3}, 26, std::string(12, 0)}).Build();
  const auto file = GgufFile::Parse(BytesOf(bytes), "x.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->tensors()[0].type.has_value());
  EXPECT_EQ(ParseStatus(GgufBuilder().Tensor({"ids", {4}, 26, std::string(12, 0)}).Build()).code(),
            StatusCode::kDataLoss);
}

TEST(GgufTest, RefusesBadTensorDescriptions) {
  const std::string data(4096, 0);
  const auto code = [&](BuiltTensor tensor) {
    return ParseStatus(GgufBuilder().Tensor(std::move(tensor)).Build()).code();
  };
  EXPECT_EQ(code({"t", {}, 0, data}), StatusCode::kDataLoss);
  EXPECT_EQ(code({"t", {1, 1, 1, 1, 1}, 0, data}), StatusCode::kDataLoss);
  EXPECT_EQ(code({"t", {4, 0}, 0, data}), StatusCode::kDataLoss);
  EXPECT_EQ(code({"t", {33}, 8, data}), StatusCode::kDataLoss);  // not whole blocks
  EXPECT_EQ(code({"t", {1ull << 32, 1ull << 32}, 0, data}),
            StatusCode::kDataLoss);                                      // 2^64 elements
  EXPECT_EQ(code({"t", {1ull << 62}, 0, data}), StatusCode::kDataLoss);  // 2^64 bytes
  EXPECT_EQ(code({"t", {~0ull}, 0, data}), StatusCode::kDataLoss);
  EXPECT_EQ(code({"", {4}, 0, data}), StatusCode::kDataLoss);
  EXPECT_EQ(code({std::string(65, 'n'), {4}, 0, data}), StatusCode::kDataLoss);
  EXPECT_EQ(code({"t", {4, 4, 4, 4}, 0, data}), StatusCode::kOk);
}

TEST(GgufTest, RefusesDuplicates) {
  const Status key =
      ParseStatus(GgufBuilder().Uint32("a", 1).Uint32("b", 1).Uint32("a", 2).Build());
  EXPECT_EQ(key.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(key.message()), HasSubstr("'a' appears twice"));
  EXPECT_EQ(
      ParseStatus(GgufBuilder().Tensor({"t", {1}, 0, "1234"}).Tensor({"t", {1}, 0, "1234"}).Build())
          .code(),
      StatusCode::kDataLoss);
}

TEST(GgufTest, RefusesOverlapAndMisalignment) {
  const auto with_offset = [](std::uint64_t offset) {
    ByteWriter out;
    out.Raw("GGUF").Put<std::uint32_t>(3).Put<std::uint64_t>(2).Put<std::uint64_t>(0);
    for (const auto& [name, at] : {std::pair("a", std::uint64_t{0}), std::pair("b", offset)}) {
      out.String(name)
          .Put<std::uint32_t>(1)
          .Put<std::uint64_t>(16)
          .Put<std::uint32_t>(0)
          .Put<std::uint64_t>(at);
    }
    std::string file = out.bytes();
    file.resize((file.size() + 31) / 32 * 32 + 256);
    return file;
  };
  EXPECT_EQ(ParseStatus(with_offset(64)).code(), StatusCode::kOk);
  EXPECT_EQ(ParseStatus(with_offset(32)).code(), StatusCode::kDataLoss);
  EXPECT_EQ(ParseStatus(with_offset(65)).code(), StatusCode::kDataLoss);
  EXPECT_EQ(ParseStatus(with_offset(1024)).code(), StatusCode::kDataLoss);
  EXPECT_EQ(ParseStatus(with_offset(~std::uint64_t{31})).code(), StatusCode::kDataLoss);
}

TEST(GgufTest, BoundsNestedArrays) {
  const auto nested = [](int depth) {
    ByteWriter out;
    for (int i = 1; i < depth; ++i)
      out.Put(static_cast<std::uint32_t>(GgufType::kArray)).Put<std::uint64_t>(1);
    out.Put(static_cast<std::uint32_t>(GgufType::kUint8)).Put<std::uint64_t>(2).Raw("ab");
    return GgufBuilder().Entry("nested", GgufType::kArray, out.bytes()).Build();
  };
  EXPECT_TRUE(ParseStatus(nested(1)).ok());
  EXPECT_TRUE(ParseStatus(nested(kGgufMaxArrayDepth)).ok());
  EXPECT_EQ(ParseStatus(nested(kGgufMaxArrayDepth + 1)).code(), StatusCode::kDataLoss);
  EXPECT_EQ(ParseStatus(nested(100000)).code(), StatusCode::kDataLoss);
}

TEST(GgufTest, AnnouncedCountsNeverLeadTheFile) {
  const auto header = [](std::uint64_t tensors, std::uint64_t entries) {
    std::string file =
        ByteWriter().Raw("GGUF").Put<std::uint32_t>(3).Put(tensors).Put(entries).bytes();
    return file + std::string(64, 0);
  };
  EXPECT_EQ(ParseStatus(header(~0ull, 0)).code(), StatusCode::kDataLoss);
  EXPECT_EQ(ParseStatus(header(0, ~0ull)).code(), StatusCode::kDataLoss);
  for (const GgufType type :
       {GgufType::kUint8, GgufType::kFloat64, GgufType::kString, GgufType::kArray}) {
    for (const std::uint64_t count :
         {std::uint64_t{1} << 61, ~std::uint64_t{0}, std::uint64_t{1000}}) {
      const std::string value =
          ByteWriter().Put(static_cast<std::uint32_t>(type)).Put(count).bytes();
      EXPECT_EQ(ParseStatus(GgufBuilder().Entry("a", GgufType::kArray, value).Build()).code(),
                StatusCode::kDataLoss);
    }
  }
}

TEST(GgufTest, TruncationSaysHowMuchIsThere) {
  std::string bytes = SmallGguf().Build();
  bytes.pop_back();
  const Status status = ParseStatus(bytes);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(std::to_string(bytes.size()) + " bytes of the " +
                        std::to_string(bytes.size() + 1)));
}

TEST(GgufTest, EveryTruncationIsRefused) {
  const std::string bytes = SmallGguf().Build();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // A copy of exactly this length, so that the address sanitizer sees a read past the end.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(GgufFile::Parse(BytesOf({cut.data(), cut.size()}), "x.gguf").ok()) << length;
  }
}

}  // namespace
}  // namespace holmes::weights
