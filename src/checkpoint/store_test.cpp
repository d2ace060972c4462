#include "checkpoint/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cstring>
#include <fstream>

#include "base/random.hpp"

namespace fivefold::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Store : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = Path(testing::TempDir()) / fmt::format("store_test.{}", ::getpid());
    std::filesystem::remove_all(folder_);
    values_.resize(100000);
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = float(i);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Status save_step(int64_t step, int64_t keep = 0) {
    values_[0] = float(step);
    const TensorToStore tensors[] = {
        {"w", ConstView(values_.data(), DType::f32, {int64_t(values_.size())}), {1000, 100}}};
    return save(folder_, step, tensors, {{"step", std::to_string(step)}}, keep).map([](Path) {});
  }
  std::vector<Saved> saves() const { return list_saves(folder_).value(); }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> found;
    for (const Saved& s : saves()) found.push_back(s.step);
    return found;
  }
  // The save opens, is whole, and is that step's.
  void expect_sound(const Saved& saved) const {
    const auto file = open_save(saved.path);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->metadata().at("step"), std::to_string(saved.step));
    std::vector<float> read(values_.size());
    ASSERT_TRUE(read_into(file->tensors().at("w"), "w",
                          View(read.data(), DType::f32, {int64_t(read.size())})));
    EXPECT_EQ(read[0], float(saved.step));
    EXPECT_EQ(read.back(), values_.back());
  }
  void flip_byte(const Path& path, int64_t from_end) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-from_end, std::ios::end);
    const char byte = char(file.get() ^ 4);
    file.seekp(-from_end, std::ios::end);
    file.put(byte);
  }
  size_t files_in_folder() const {
    return size_t(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  Path folder_;
  std::vector<float> values_;
};

TEST_F(Store, SavesAreListedByStepAndReadBack) {
  EXPECT_THAT(steps(), ElementsAre());  // no folder yet
  for (const int64_t step : {20, 3, 100000000}) ASSERT_TRUE(save_step(step));
  EXPECT_THAT(steps(), ElementsAre(3, 20, 100000000));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "step-00000003.safetensors"));
  for (const Saved& s : saves()) expect_sound(s);
}

TEST_F(Store, OtherFilesAreNotSaves) {
  ASSERT_TRUE(save_step(7));
  for (const char* name :
       {"step-00000008.safetensors.123.tmp", "step-9.safetensors", "step--0000001.safetensors",
        "step-0000001x.safetensors", "step-.safetensors", "step-99999999999999999999.safetensors",
        "model.safetensors", "step-00000010.safetensors.bak"}) {
    ASSERT_TRUE(write_file(folder_ / name, "x"));
  }
  EXPECT_THAT(steps(), ElementsAre(7));
}

TEST_F(Store, RetentionKeepsTheNewest) {
  for (int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(save_step(step, 2));
  EXPECT_THAT(steps(), ElementsAre(4, 5));
  ASSERT_TRUE(save_step(6, 0));
  EXPECT_THAT(steps(), ElementsAre(4, 5, 6));
}

// A run that went back to step 10 saves 11 while the abandoned 20 and 30 still lie there.
TEST_F(Store, RetentionNeverDeletesTheSaveJustMade) {
  for (const int64_t step : {10, 20, 30}) ASSERT_TRUE(save_step(step));
  ASSERT_TRUE(save_step(11, 1));
  EXPECT_THAT(steps(), ElementsAre(11));
}

TEST_F(Store, RetentionDoesNotCountDamagedSaves) {
  for (const int64_t step : {1, 2, 3}) ASSERT_TRUE(save_step(step));
  std::filesystem::resize_file(folder_ / "step-00000003.safetensors", 1000);
  ASSERT_TRUE(save_step(4, 2));
  EXPECT_THAT(steps(), ElementsAre(2, 3, 4));  // 3 is damaged: 2 is the second that opens
}

TEST_F(Store, DamageIsFoundWhenASaveIsOpened) {
  for (const int64_t step : {1, 2, 3}) ASSERT_TRUE(save_step(step));
  flip_byte(folder_ / "step-00000002.safetensors", 5000);
  std::filesystem::resize_file(folder_ / "step-00000003.safetensors", 300000);
  EXPECT_THAT(steps(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(open_save(folder_ / "step-00000001.safetensors"));
  const auto flipped = open_save(folder_ / "step-00000002.safetensors");
  ASSERT_FALSE(flipped);
  EXPECT_THAT(flipped.error().message, HasSubstr("not those that were saved"));
  EXPECT_THAT(flipped.error().message, HasSubstr("step-00000001.safetensors"));
  const auto cut = open_save(folder_ / "step-00000003.safetensors");
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("cut short"));
  EXPECT_THAT(cut.error().message,
              AllOf(HasSubstr("move it away"), HasSubstr("step-00000002.safetensors")));
  std::filesystem::resize_file(folder_ / "step-00000001.safetensors", 300000);
  EXPECT_THAT(open_save(folder_ / "step-00000001.safetensors").error().message,
              HasSubstr("there is no save before it"));
}

// Every byte of the header belongs to a name, a shape, an offset or the metadata: none can change
// without being seen.
TEST_F(Store, AnEditedHeaderIsFound) {
  ASSERT_TRUE(save_step(1));
  const Path path = folder_ / "step-00000001.safetensors";
  const std::string sound = read_file(path).value();
  uint64_t header = 0;
  std::memcpy(&header, sound.data(), sizeof header);
  int edited = 0;
  for (size_t at = 8; at < 8 + header; ++at) {
    // Digits and letters, so that it stays JSON.
    if (!std::isalnum(static_cast<unsigned char>(sound[at]))) continue;
    std::string text = sound;
    text[at] = text[at] == '7' ? '8' : text[at] == 'q' ? 'r' : std::isdigit(text[at]) ? '7' : 'q';
    ASSERT_TRUE(write_file(path, text));
    EXPECT_FALSE(open_save(path)) << text.substr(8, header);
    ++edited;
  }
  EXPECT_GT(edited, 50);
}

TEST_F(Store, ARenamedSaveIsNotAnotherStep) {
  ASSERT_TRUE(save_step(1));
  std::filesystem::rename(folder_ / "step-00000001.safetensors",
                          folder_ / "step-00000009.safetensors");
  EXPECT_THAT(open_save(folder_ / "step-00000009.safetensors").error().message,
              HasSubstr("holds step 1, not the one of its name"));
}

TEST_F(Store, ForeignSafetensorsAreNotCheckpoints) {
  ASSERT_TRUE(make_folder(folder_));
  ASSERT_TRUE(write_safetensors(folder_ / "m.safetensors", std::span<const TensorToStore>(), {}));
  EXPECT_THAT(open_save(folder_ / "m.safetensors").error().message,
              HasSubstr("not one of our checkpoints"));
}

// A full disk, as the kernel's file size limit: the write fails in the middle.
TEST_F(Store, FullDiskLeavesTheOldSave) {
  ASSERT_TRUE(save_step(1));
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit tight = old;
  tight.rlim_cur = 150000;
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status second = save_step(2, 1), again = save_step(1, 1);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  ::signal(SIGXFSZ, handler);
  for (const Status& status : {second, again}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Error::Code::io);
    EXPECT_THAT(status.error().message, HasSubstr("cannot be written"));
  }
  EXPECT_THAT(steps(), ElementsAre(1));
  expect_sound(saves().front());
  EXPECT_EQ(files_in_folder(), 1u);  // nothing half-written is left
}

TEST_F(Store, UnwritableFoldersAreNamed) {
  const Path good = folder_;
  ASSERT_TRUE(save_step(1));
  folder_ = good / "step-00000001.safetensors" / "below_a_file";
  const Status below = save_step(2);
  folder_ = "/proc/self";  // refuses new files to root as well
  const Status refused = save_step(2);
  folder_ = good;
  for (const Status& status : {below, refused}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Error::Code::io);
  }
  EXPECT_THAT(below.error().message, HasSubstr("below_a_file"));
  EXPECT_THAT(refused.error().message, HasSubstr("/proc/self/step-00000002.safetensors"));
  EXPECT_THAT(steps(), ElementsAre(1));
}

// Killed at any moment, a saver leaves only whole saves, and the next one tidies up after it.
TEST_F(Store, KilledSaverLeavesOnlyWholeSaves) {
  const Random random(3, stream_of("KilledSaverLeavesOnlyWholeSaves"));
  ASSERT_TRUE(save_step(0));
  for (uint64_t trial = 0; trial < 40; ++trial) {
    const int64_t next = saves().back().step + 1;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int64_t step = next;; ++step) {
        if (!save_step(step, 3)) ::_exit(1);
      }
    }
    ::usleep(useconds_t(random.below(trial, 15000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the saver failed by itself";
    const std::vector<Saved> left = saves();
    ASSERT_FALSE(left.empty());
    for (const Saved& saved : left) expect_sound(saved);
  }
  ASSERT_TRUE(save_step(1000000, 1));
  EXPECT_EQ(files_in_folder(), 1u);
}

}  // namespace
}  // namespace fivefold::checkpoint
