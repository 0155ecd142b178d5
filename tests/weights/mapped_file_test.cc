#include "weights/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string_view>
#include <utility>

#include "weights/temp_dir.h"

namespace holmes::weights {
namespace {

std::string_view TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFileTest, MapsAndMoves) {
  const TempDir dir;
  auto opened = MappedFile::Open(dir.Write("a", "hello"));
  ASSERT_TRUE(opened.ok());
  MappedFile file = *std::move(opened);
  EXPECT_EQ(TextOf(file), "hello");
  MappedFile other;
  other = std::move(file);
  EXPECT_EQ(TextOf(other), "hello");
  EXPECT_TRUE(file.bytes().empty());  // NOLINT(bugprone-use-after-move)
}

TEST(MappedFileTest, AdviceIsCutToTheFile) {
  const TempDir dir;
  const auto file = MappedFile::Open(dir.Write("a", std::string(10000, 'x')));
  ASSERT_TRUE(file.ok());
  for (const AccessPattern pattern : {AccessPattern::kNormal,
                                      AccessPattern::kSequential,
                                      AccessPattern::kRandom,
                                      AccessPattern::kWillNeed}) {
    EXPECT_TRUE(file->Advise(pattern, 5000, 100).ok());
    EXPECT_TRUE(file->Advise(pattern, 5000, ~std::size_t{0}).ok());
    EXPECT_TRUE(file->Advise(pattern, 20000, 1).ok());
  }
}

TEST(MappedFileTest, EmptyFileHasNoBytes) {
  const TempDir dir;
  const auto file = MappedFile::Open(dir.Write("a", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
  EXPECT_TRUE(file->Advise(AccessPattern::kWillNeed, 0, 100).ok());
}

TEST(MappedFileTest, RefusesWhatIsNoFile) {
  const TempDir dir;
  EXPECT_EQ(MappedFile::Open(dir.path() + "/absent").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(MappedFile::Open(dir.path()).status().code(), StatusCode::kInvalidArgument);
  const std::string pipe = dir.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::Open(pipe).status().code(),
            StatusCode::kInvalidArgument);  // and does not wait for a writer
}

}  // namespace
}  // namespace holmes::weights
