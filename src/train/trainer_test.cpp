#include "train/trainer.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>

#include "base/files.hpp"
#include "checkpoint/store.hpp"
#include "comm/threads.hpp"
#include "train/loaded_model.hpp"
#include "train/run_state.hpp"

namespace fivefold::train {
namespace {

// Keeps what a run reports.
class Recorder : public Reporter {
 public:
  void already_done(int64_t step, const std::string&) override { done_before = step; }
  void started(const StartInfo& info) override {
    start = info;
    start.run = nullptr;
  }
  void stepped(const StepReport& report) override {
    steps.push_back(report);
    if (on_step) on_step(report);
  }
  void validated(const ValidationReport& report) override { validations.push_back(report); }
  void saved(int64_t step, const std::string&) override { saves.push_back(step); }
  void finished(const Summary& s) override { summary = s; }

  std::vector<double> losses() const {
    std::vector<double> out;
    for (const StepReport& s : steps) out.push_back(s.loss);
    return out;
  }
  int64_t done_before = 0;
  StartInfo start;
  std::vector<StepReport> steps;
  std::vector<ValidationReport> validations;
  std::vector<int64_t> saves;
  Summary summary;
  std::function<void(const StepReport&)> on_step;
};

class TrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = Path(testing::TempDir()) /
              fmt::format("trainer-{}-{}",
                          testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid());
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(make_folder(folder_));
    std::string text;
    for (int i = 0; i < 400; ++i) {
      text += fmt::format("Line {} of the text says that {} and {} are numbers.\n", i, i * i % 97,
                          i * 7 % 31);
    }
    ASSERT_TRUE(write_file(folder_ / "text.txt", text));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  spec::RunSpec run_spec(const std::string& name) const {
    spec::RunSpec run;
    run.dump_folder = (folder_ / name).string();
    run.model.name = "test";
    run.model.vocab_size = 257;
    run.model.dim = 16;
    run.model.num_layers = 2;
    run.model.num_heads = 4;
    run.model.num_kv_heads = 2;
    run.model.head_dim = 4;
    run.model.hidden_dim = 24;
    run.model.max_seq_len = 32;
    run.data.sources = {{.path = (folder_ / "text.txt").string()}};
    run.data.validation_share = 0.1;
    run.training.seq_len = 16;
    run.training.global_batch_size = 12;
    run.training.steps = 6;
    run.optimizer.lr = 1e-2;
    run.lr_scheduler.warmup_steps = 2;
    run.validation.freq = 3;
    run.validation.steps = 2;
    run.parallelism.bucket_size_mb = 1;
    return run;
  }

  Status go(const spec::RunSpec& run, Recorder& recorder, int ranks = 1) {
    return comm::run_threads(ranks, {}, [&](comm::Communicator& world) {
      return train(run, {.world = world,
                         .reporter = world.rank() == 0 ? &recorder : nullptr,
                         .stop = stop_,
                         .threads = 1,
                         .transport = "threads"});
    });
  }
  Recorder must(const spec::RunSpec& run, int ranks = 1) {
    Recorder recorder;
    const Status status = go(run, recorder, ranks);
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
    return recorder;
  }

  Path folder_;
  std::atomic<bool> stop_ = false;
};

TEST_F(TrainerTest, LearnsAndReports) {
  spec::RunSpec run = run_spec("a");
  run.training.steps = 60;
  const Recorder r = must(run);
  ASSERT_EQ(r.steps.size(), 60u);
  EXPECT_NEAR(r.steps[0].loss, std::log(257.0), 0.1);
  EXPECT_LT(r.steps.back().loss, 3.2);
  EXPECT_EQ(r.summary.last_step, 60);
  EXPECT_EQ(r.validations.back().step, 60);
  EXPECT_LT(r.validations.back().bits_per_byte, 5);
  EXPECT_EQ(r.saves, std::vector<int64_t>{60});
  // What was expected of the memory is what was measured.
  EXPECT_EQ(r.summary.peak.of(Category::parameter), r.summary.expected.parameter);
  EXPECT_EQ(r.summary.peak.of(Category::gradient), r.summary.expected.gradient);
  EXPECT_EQ(r.summary.peak.of(Category::optimizer), r.summary.expected.optimizer);
  EXPECT_EQ(r.summary.peak.of(Category::activation), r.summary.expected.activation);
  const std::string metrics = read_file(folder_ / "a" / "metrics.jsonl").value();
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 1 + 60 + 20 + 1 + 1);
}

// The global batch and the initial weights are the run file's; ranks only share the work.
TEST_F(TrainerTest, AnyNumberOfRanksTrainsTheSameModel) {
  spec::RunSpec run = run_spec("one");
  run.training.global_batch_size = 84;
  run.training.steps = 5;
  const Recorder one = must(run);
  for (const int ranks : {2, 3, 4, 7}) {
    for (const int64_t micro : std::vector<int64_t>{1, 84 / ranks / (ranks == 4 ? 3 : 2)}) {
      spec::RunSpec other = run;
      other.dump_folder = (folder_ / fmt::format("r{}m{}", ranks, micro)).string();
      other.training.micro_batch_size = micro;
      const Recorder r = must(other, ranks);
      EXPECT_EQ(r.start.weights_hash, one.start.weights_hash);
      ASSERT_EQ(r.steps.size(), one.steps.size());
      for (size_t i = 0; i < r.steps.size(); ++i) {
        EXPECT_NEAR(r.steps[i].loss, one.steps[i].loss, 1e-5 * one.steps[i].loss) << ranks;
        EXPECT_NEAR(r.steps[i].grad_norm, one.steps[i].grad_norm, 1e-4 * one.steps[i].grad_norm);
        EXPECT_EQ(r.steps[i].tokens, one.steps[i].tokens);
      }
      EXPECT_NEAR(r.validations.back().loss, one.validations.back().loss, 1e-4);
    }
  }
}

TEST_F(TrainerTest, ARerunGivesTheSameBits) {
  for (const char* precision : {"float32", "bfloat16", "float64"}) {
    spec::RunSpec run = run_spec(std::string("a") + precision);
    run.training.mixed_precision_param = precision;
    if (run.training.mixed_precision_param == "float64") run.training.mixed_precision_reduce = "float64";
    const Recorder a = must(run, 2);
    run.dump_folder = (folder_ / (std::string("b") + precision)).string();
    const Recorder b = must(run, 2);
    EXPECT_EQ(a.losses(), b.losses()) << precision;
    EXPECT_EQ(a.summary.weights_hash, b.summary.weights_hash) << precision;
    EXPECT_LT(a.losses().back(), a.losses().front()) << precision;
  }
}

// 2N steps in one go, and in three pieces with two resumes.
TEST_F(TrainerTest, ResumedTwiceGivesTheSameBits) {
  for (const char* precision : {"float32", "bfloat16", "float64"}) {
    spec::RunSpec run = run_spec(std::string("whole") + precision);
    run.training.mixed_precision_param = precision;
    if (run.training.mixed_precision_param == "float64") run.training.mixed_precision_reduce = "float64";
    const Recorder whole = must(run);
    run.dump_folder = (folder_ / (std::string("pieces") + precision)).string();
    std::vector<double> losses;
    Recorder last;
    for (const int64_t until : {2, 4, 6}) {
      last = Recorder();
      last.on_step = [&](const StepReport& s) { stop_ = s.step + 1 >= until; };
      stop_ = false;
      const Status status = go(run, last);
      ASSERT_TRUE(status) << status.error().message;
      for (const double loss : last.losses()) losses.push_back(loss);
    }
    stop_ = false;
    EXPECT_EQ(losses, whole.losses()) << precision;
    EXPECT_EQ(last.summary.weights_hash, whole.summary.weights_hash) << precision;
    EXPECT_EQ(last.steps.back().tokens, whole.steps.back().tokens);
    EXPECT_EQ(last.start.first_step, 5);
    EXPECT_TRUE(last.start.changed_on_resume.empty());
  }
}

TEST_F(TrainerTest, ResumeTakesTheRunFilesLearningRateAndSaysSo) {
  spec::RunSpec run = run_spec("a");
  run.training.steps = 3;
  must(run);
  run.training.steps = 6;
  run.optimizer.lr = 5e-3;
  const Recorder r = must(run);
  EXPECT_EQ(r.start.first_step, 4);
  ASSERT_EQ(r.start.changed_on_resume.size(), 2u);
  EXPECT_EQ(r.start.changed_on_resume[0].substr(0, 13), "optimizer.lr:");
  EXPECT_LE(r.steps[0].lr, 5e-3);
}

TEST_F(TrainerTest, AFinishedRunIsLeftAlone) {
  const spec::RunSpec run = run_spec("a");
  must(run);
  const Recorder again = must(run);
  EXPECT_EQ(again.done_before, 6);
  EXPECT_TRUE(again.steps.empty());
}

TEST_F(TrainerTest, AFolderTakesOneRunAtATime) {
  const spec::RunSpec run = run_spec("a");
  Recorder first, second;
  Status other;
  first.on_step = [&](const StepReport& s) {
    if (s.step == 1) other = go(run, second);
  };
  ASSERT_TRUE(go(run, first));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("another run"), std::string::npos);
}

TEST_F(TrainerTest, ResumeRefusesAnotherModel) {
  spec::RunSpec run = run_spec("a");
  must(run);
  run.model.hidden_dim = 32;
  Recorder r;
  const Status status = go(run, r);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Error::Code::invalid_input);
  EXPECT_NE(status.error().message.find("hidden_dim: 24 -> 32"), std::string::npos)
      << status.error().message;
}

TEST_F(TrainerTest, AStopSavesAndEndsCleanly) {
  spec::RunSpec run = run_spec("a");
  Recorder r;
  r.on_step = [&](const StepReport& s) { stop_ = s.step == 2; };
  ASSERT_TRUE(go(run, r, 2));
  EXPECT_TRUE(r.summary.interrupted);
  EXPECT_EQ(r.summary.last_step, 3);
  EXPECT_EQ(r.saves, std::vector<int64_t>{3});
}

TEST_F(TrainerTest, NotFiniteNamesPartStepAndLastCheckpoint) {
  spec::RunSpec run = run_spec("a");
  run.training.max_norm = 0;
  run.checkpoint.interval = 1;
  run.lr_scheduler.warmup_steps = 0;
  must([&] {
    spec::RunSpec good = run;
    good.training.steps = 2;
    return good;
  }());
  run.optimizer.lr = 1e38;
  Recorder r;
  const Status status = go(run, r);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Error::Code::not_finite);
  const std::string& message = status.error().message;
  EXPECT_NE(message.find("step 4"), std::string::npos) << message;
  EXPECT_NE(message.find("model."), std::string::npos) << message;
  EXPECT_NE(message.find("step-00000003.safetensors"), std::string::npos) << message;
}

TEST_F(TrainerTest, CheckpointLoadsForUse) {
  const spec::RunSpec run = run_spec("a");
  const Recorder r = must(run);
  const auto loaded = load_for_use(run.dump_folder, {});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)->step, 6);
  EXPECT_EQ(hash_of((*loaded)->parameters->values()), r.summary.weights_hash);
}

// A new run goes on from the float32 masters of a bfloat16 save, not from their rounding.
TEST_F(TrainerTest, InitialWeightsAreTheUnroundedOnes) {
  spec::RunSpec first = run_spec("first");
  first.training.mixed_precision_param = "bfloat16";
  must(first);
  spec::RunSpec second = first;
  second.dump_folder = (folder_ / "second").string();
  second.checkpoint.initial_load_path = first.dump_folder;
  second.training.steps = 1;
  second.optimizer.lr = 1e-12;
  second.optimizer.weight_decay = 0;
  const Recorder r = must(second);
  EXPECT_EQ(r.start.first_step, 1);
  EXPECT_EQ(r.start.weights_from, newest_save(first.dump_folder).value().string());
  const auto from = checkpoint::open_save(newest_save(first.dump_folder).value());
  const auto to = checkpoint::open_save(newest_save(second.dump_folder).value());
  ASSERT_TRUE(from && to);
  double moved = 0, rounding = 0;
  for (const auto& [name, tensor] : from->tensors()) {
    if (!name.ends_with(".master")) continue;
    const auto read = [&, master = name](const checkpoint::StoredTensor& t) {
      std::vector<float> values(size_t(t.count()));
      EXPECT_TRUE(checkpoint::read_into(t, master, View(values.data(), DType::f32, {t.count()})));
      return values;
    };
    const std::vector<float> before = read(tensor), after = read(to->tensors().at(name));
    const std::vector<float> rounded =
        read(from->tensors().at(name.substr(0, name.size() - std::string(".master").size())));
    for (size_t i = 0; i < before.size(); ++i) {
      moved = std::max(moved, double(std::abs(after[i] - before[i])));
      rounding = std::max(rounding, double(std::abs(rounded[i] - before[i])));
    }
  }
  EXPECT_LT(moved, 1e-7);
  EXPECT_GT(rounding, 1e-4);
}

// The log cannot grow: the run ends with the step saved, and goes on later from whole lines.
TEST_F(TrainerTest, AFullDiskUnderTheLogLosesNothing) {
  spec::RunSpec run = run_spec("full");
  run.training.steps = 40;
  // A long log already, so that the limit below leaves room for a save.
  ASSERT_TRUE(make_folder(folder_ / "full"));
  std::string past;
  while (past.size() < 1 << 20) past += "{\"kind\": \"old\"}\n";
  ASSERT_TRUE(write_file(folder_ / "full" / "metrics.jsonl", past));
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  Recorder recorder;
  recorder.on_step = [&](const StepReport& report) {
    if (report.step != 5) return;
    rlimit tight = old;
    tight.rlim_cur = std::filesystem::file_size(folder_ / "full" / "metrics.jsonl") + 20;
    ::setrlimit(RLIMIT_FSIZE, &tight);
  };
  const Status status = go(run, recorder);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Error::Code::io);
  EXPECT_NE(status.error().message.find("metrics.jsonl"), std::string::npos);
  EXPECT_NE(status.error().message.find("step 5 was saved to"), std::string::npos)
      << status.error().message;
  const auto lines = [&] { return read_file(folder_ / "full" / "metrics.jsonl").value(); };
  EXPECT_TRUE(lines().ends_with("}\n")) << lines();
  // Killed in the middle of a line.
  ASSERT_TRUE(write_file(folder_ / "full" / "metrics.jsonl", lines() + "{\"kind\": \"st"));
  Recorder again = must(run);
  EXPECT_EQ(again.start.first_step, 6);
  EXPECT_EQ(again.summary.last_step, 40);
  EXPECT_EQ(lines().find("\"st{"), std::string::npos);
}

TEST_F(TrainerTest, RecomputationDoesNotChangeTheRun) {
  spec::RunSpec run = run_spec("none");
  const Recorder none = must(run);
  for (const char* mode : {"selective", "full"}) {
    run.dump_folder = (folder_ / mode).string();
    run.activation_checkpoint.mode = mode;
    const Recorder r = must(run);
    EXPECT_EQ(r.losses(), none.losses()) << mode;
    EXPECT_LT(r.summary.peak.of(Category::activation), none.summary.peak.of(Category::activation));
  }
}

}  // namespace
}  // namespace fivefold::train
