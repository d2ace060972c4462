#include "base/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace fivefold {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = Path(testing::TempDir()) /
              (std::string("files-") +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Path folder_;
};

TEST_F(Files, PipesAreNotMappedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const Path& path : {folder_ / "pipe", Path("/dev/null")}) {
    const auto mapped = MappedFile::open(path);
    ASSERT_FALSE(mapped);
    EXPECT_EQ(mapped.error().code, Error::Code::invalid_input);
    EXPECT_NE(mapped.error().message.find("a pipe or a device"), std::string::npos);
  }
}

TEST_F(Files, WrittenFileIsReadBack) {
  ASSERT_TRUE(write_file(folder_ / "a", "hello"));
  EXPECT_EQ(read_file(folder_ / "a").value(), "hello");
  EXPECT_EQ(MappedFile::open(folder_ / "a")->bytes().size(), 5u);
}

TEST_F(Files, UncommittedFileLeavesTheOldOne) {
  ASSERT_TRUE(write_file(folder_ / "a", "old"));
  {
    auto file = DurableFile::create(folder_ / "a");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("new"));
  }
  EXPECT_EQ(read_file(folder_ / "a").value(), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, MissingFilesAndFoldersAreNamed) {
  EXPECT_EQ(read_file(folder_ / "none").error().code, Error::Code::invalid_input);
  EXPECT_EQ(read_file(folder_).error().code, Error::Code::invalid_input);
  const auto file = DurableFile::create(folder_ / "no" / "such" / "a");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Error::Code::io);
}

TEST_F(Files, EmptyFileMapsToNothing) {
  ASSERT_TRUE(write_file(folder_ / "a", ""));
  EXPECT_TRUE(MappedFile::open(folder_ / "a")->bytes().empty());
}

}  // namespace
}  // namespace fivefold
