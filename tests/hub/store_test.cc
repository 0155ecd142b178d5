#include "hub/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace holmes::hub {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A store in a temporary folder, filled as huggingface_hub fills it.
class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    std::string name = (fs::temp_directory_path() / "holmes_hub_XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
  }
  ~StoreTest() override {
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
  }
  void Write(const fs::path& path, std::string_view bytes) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  fs::path AddFile(const std::string& repository,
                   const std::string& file,
                   const std::string& revision = "abc") {
    const fs::path root = dir_ / repository;
    const fs::path blob = root / "blobs" / ("hash-of-" + fs::path(file).filename().string());
    Write(blob, "bytes");
    const fs::path link = root / "snapshots" / revision / file;
    fs::create_directories(link.parent_path());
    fs::create_symlink(blob, link);
    return link;
  }
  void SetMain(const std::string& repository, const std::string& revision) {
    Write(dir_ / repository / "refs" / "main", revision);
  }
  Store store() const { return Store(dir_.string()); }
  std::vector<std::string> Ids() const {
    std::vector<std::string> ids;
    for (const StoredModel& model : store().List()) ids.push_back(model.id);
    return ids;
  }

  fs::path dir_;
};

constexpr char kTiny[] = "models--acme--Tiny-1B-Instruct-GGUF";

TEST_F(StoreTest, FindsTheOnlyFileUnderEveryFormOfItsName) {
  const fs::path file = AddFile(kTiny, "Tiny-1B-Instruct.Q4_1.gguf");
  SetMain(kTiny, "abc");
  for (const char* name : {"acme/Tiny-1B-Instruct-GGUF",
                           "acme/tiny-1b-instruct",
                           "Tiny-1B-Instruct-GGUF",
                           "tiny-1b-instruct",
                           "Tiny-1B-Instruct:q4_1"}) {
    const auto found = store().Resolve(name);
    ASSERT_TRUE(found.ok()) << name << ": " << found.status().ToString();
    EXPECT_EQ(found->path, file.string());
    EXPECT_EQ(found->name, "acme/Tiny-1B-Instruct-GGUF");
  }
}

TEST_F(StoreTest, TakesTheSnapshotOfMainAmongSeveral) {
  AddFile(kTiny, "old.gguf", "old");
  const fs::path file = AddFile(kTiny, "new.gguf", "new");
  EXPECT_THAT(Ids(), IsEmpty());  // which one is meant is unknown
  SetMain(kTiny, "new\n");
  const auto found = store().Resolve("Tiny-1B-Instruct");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->path, file.string());
}

TEST_F(StoreTest, AsksWhichOfSeveralFilesIsMeant) {
  AddFile(kTiny, "tiny-Q4_0.gguf");
  AddFile(kTiny, "tiny-Q8_0.gguf");
  const auto several = store().Resolve("Tiny-1B-Instruct");
  EXPECT_EQ(several.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(several.status().message()),
              HasSubstr("acme/Tiny-1B-Instruct-GGUF:tiny-Q8_0.gguf"));
  const auto one = store().Resolve("Tiny-1B-Instruct:Q8_0");
  ASSERT_TRUE(one.ok());
  EXPECT_THAT(one->path, EndsWith("tiny-Q8_0.gguf"));
  EXPECT_TRUE(store().Resolve(one->name).ok());
}

TEST_F(StoreTest, ServesAFolderOfSafetensors) {
  const fs::path config = AddFile("models--acme--Tiny", "config.json");
  EXPECT_THAT(Ids(), IsEmpty());
  AddFile("models--acme--Tiny", "model.safetensors");
  const auto found = store().Resolve("acme/tiny");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->path, config.parent_path().string());
}

TEST_F(StoreTest, LeavesOutWhatIsNotWhole) {
  AddFile("models--acme--Broken", "model.gguf");
  fs::remove_all(dir_ / "models--acme--Broken" / "blobs");
  AddFile("datasets--acme--Words", "words.gguf");
  Write(dir_ / "version.txt", "1");
  EXPECT_THAT(Ids(), IsEmpty());
}

TEST_F(StoreTest, ARevisionCannotLeaveItsRepository) {
  Write(dir_ / "elsewhere" / "secret.gguf", "bytes");
  fs::create_directories(dir_ / kTiny / "snapshots");
  SetMain(kTiny, "../../elsewhere");
  EXPECT_THAT(Ids(), IsEmpty());
}

TEST_F(StoreTest, NamesTheNearestForANameThatIsNotThere) {
  AddFile(kTiny, "tiny.gguf");
  AddFile("models--acme--Huge-70B", "huge.gguf");
  EXPECT_THAT(Ids(), ElementsAre("acme/Huge-70B", "acme/Tiny-1B-Instruct-GGUF"));
  const Status status = store().Resolve("tny-1b-instruct").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the nearest there is acme/Tiny-1B-Instruct-GGUF"));
}

TEST_F(StoreTest, SaysThatAnEmptyOrMissingStoreIsEmpty) {
  EXPECT_EQ(store().Resolve("anything").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Store((dir_ / "none").string()).Resolve("anything").status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(Store("").Resolve("anything").status().code(), StatusCode::kNotFound);
}

TEST_F(StoreTest, TakesPathsAsTheyAre) {
  const fs::path file = dir_ / "plain" / "My.Model-Q8_0.gguf";
  Write(file, "bytes");
  const auto found = store().Resolve(file.string());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->path, file.string());
  EXPECT_EQ(found->name, "My.Model-Q8_0");
  const auto folder = store().Resolve(file.parent_path().string() + "/");
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folder->name, "plain");
}

TEST_F(StoreTest, NamesTheNearestFileForAPathThatIsNotThere) {
  Write(dir_ / "model-q8.gguf", "bytes");
  const Status status = store().Resolve((dir_ / "modle-q8.gguf").string()).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean"));
  EXPECT_THAT(std::string(store().Resolve("/no/such/folder/model.gguf").status().message()),
              HasSubstr("/no/such/folder cannot be read"));
}

TEST(DefaultStoreDirTest, FollowsTheVariablesOfTheHuggingFaceTools) {
  for (const char* name : {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"}) ::unsetenv(name);
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(DefaultStoreDir(), "/home/someone/.cache/huggingface/hub");
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(DefaultStoreDir(), "/cache/huggingface/hub");
  ::setenv("HF_HOME", "/hf", 1);
  EXPECT_EQ(DefaultStoreDir(), "/hf/hub");
  ::setenv("HF_HUB_CACHE", "/hub", 1);
  EXPECT_EQ(DefaultStoreDir(), "/hub");
}

}  // namespace
}  // namespace holmes::hub
