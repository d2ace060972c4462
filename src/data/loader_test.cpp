#include "data/loader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/random.hpp"
#include "data/test_folder.hpp"
#include "data/tokenize.hpp"

namespace fivefold::data {
namespace {

using testing::HasSubstr;

constexpr int64_t kSeqLen = 16;

spec::RunSpec run_on(const std::string& path) {
  spec::RunSpec run;
  run.model.vocab_size = 300;
  run.training.seq_len = kSeqLen;
  run.data.sources = {{.path = path}};
  run.data.validation_share = 0.2;
  run.debug.seed = 7;
  return run;
}

std::string some_text(int64_t bytes, uint64_t seed) {
  std::string text;
  const Random random(seed, 0);
  for (int64_t i = 0; i < bytes; ++i) {
    text.push_back(random.below(uint64_t(i), 6) == 0
                       ? ' '
                       : char('a' + random.below(uint64_t(i) + 1000000, 26)));
  }
  return text;
}

class LoaderTest : public testing::Test {
 protected:
  std::string error_of(const spec::RunSpec& run) {
    const auto loader = open_loader(run, cache());
    return loader ? "" : loader.error().message;
  }
  std::string cache() const { return folder_.path("cache"); }
  std::unique_ptr<Loader> open(const spec::RunSpec& run) {
    auto loader = open_loader(run, cache());
    EXPECT_TRUE(loader) << loader.error().message;
    return loader ? std::move(*loader) : nullptr;
  }
  TestFolder folder_;
};

TEST_F(LoaderTest, an_epoch_holds_every_window_once) {
  const std::string text = some_text(2000, 1);
  const auto loader = open(run_on(folder_.write("a.txt", text)));
  ASSERT_TRUE(loader);
  EXPECT_EQ(loader->tokens(Split::train) + loader->tokens(Split::validation), 2001);
  const int64_t n = loader->samples(Split::train);
  EXPECT_EQ(n, (loader->tokens(Split::train) - 1) / kSeqLen);
  std::multiset<std::string> first, second, expected;
  std::vector<std::string> order[2];
  for (int64_t i = 0; i < n; ++i) {
    expected.insert(text.substr(size_t(i * kSeqLen), kSeqLen));
    for (int epoch = 0; epoch < 2; ++epoch) {
      const Batch batch = loader->load(Split::train, epoch * n + i, 1).value();
      order[epoch].push_back(loader->tokenizer().decode(batch.tokens));
    }
  }
  first.insert(order[0].begin(), order[0].end());
  second.insert(order[1].begin(), order[1].end());
  EXPECT_EQ(first, expected);
  EXPECT_EQ(second, expected);
  EXPECT_NE(order[0], order[1]);
}

TEST_F(LoaderTest, samples_do_not_depend_on_how_they_are_asked_for) {
  const auto loader = open(run_on(folder_.write("a.txt", some_text(3000, 2))));
  ASSERT_TRUE(loader);
  const Batch all = loader->load(Split::train, 5, 8).value();
  for (int64_t row = 0; row < 8; ++row) {
    const Batch one = loader->load(Split::train, 5 + row, 1).value();
    for (int64_t i = 0; i < kSeqLen; ++i) {
      const auto at = size_t(row * kSeqLen + i);
      EXPECT_EQ(all.tokens[at], one.tokens[size_t(i)]);
      EXPECT_EQ(all.targets[at], one.targets[size_t(i)]);
      EXPECT_EQ(all.token_index[at], (5 + row) * kSeqLen + i);
    }
  }
}

TEST_F(LoaderTest, splits_by_documents_and_gives_their_text_back) {
  for (int i = 0; i < 10; ++i) {
    folder_.write("t/" + std::to_string(i) + ".txt", some_text(200, uint64_t(i)));
  }
  folder_.write("t/ignored.html", "<p>");
  const auto loader = open(run_on(folder_.path("t")));
  ASSERT_TRUE(loader);
  EXPECT_EQ(loader->tokens(Split::train), 8 * 201);
  EXPECT_EQ(loader->tokens(Split::validation), 2 * 201);
  EXPECT_EQ(loader->text(Split::validation).value(), some_text(200, 8) + some_text(200, 9));
  EXPECT_EQ(loader->text(Split::train)->size(), 1600U);
  // In order, and around.
  const int64_t n = loader->samples(Split::validation);
  const Batch batch = loader->load(Split::validation, 0, 1).value();
  EXPECT_EQ(loader->tokenizer().decode(batch.tokens), some_text(200, 8).substr(0, kSeqLen));
  EXPECT_EQ(loader->load(Split::validation, n, 1)->tokens, batch.tokens);
}

TEST_F(LoaderTest, borders_of_documents_restart_positions_and_are_not_predicted) {
  folder_.write("t.jsonl", "{\"text\":\"abcde\"}\n\n{\"text\":\"fghijklmnopqrstuvwxyz\"}\n");
  spec::RunSpec run = run_on(folder_.path("t.jsonl"));
  run.data.validation_share = 0;
  const auto loader = open(run);
  ASSERT_TRUE(loader);
  const Batch batch = loader->load(Split::train, 0, 1).value();
  EXPECT_EQ(batch.tokens[5], 256);
  EXPECT_EQ(batch.targets[4], 256);
  EXPECT_EQ(batch.targets[5], -1);
  EXPECT_EQ(batch.targets[6], 'g');
  EXPECT_EQ(batch.positions[5], 5);
  EXPECT_EQ(batch.positions[6], 0);
  EXPECT_EQ(batch.positions[15], 9);
  EXPECT_EQ(batch.document_start[5], 0);
  EXPECT_EQ(batch.document_start[6], 6);
  EXPECT_EQ(batch.document_start[15], 6);
  EXPECT_EQ(batch.valid_tokens, kSeqLen - 1);
  EXPECT_EQ(batch.target_bytes, kSeqLen - 2);  // the end of text has no bytes

  run.data.pack_documents = run.data.mask_document_borders = false;
  const Batch plain = open(run)->load(Split::train, 0, 1).value();
  EXPECT_EQ(plain.targets[5], 'f');
  EXPECT_EQ(plain.positions[15], 15);
  EXPECT_EQ(plain.document_start[15], 0);
  EXPECT_EQ(plain.valid_tokens, kSeqLen);
}

TEST_F(LoaderTest, prompts_bear_no_loss) {
  folder_.write("t.jsonl",
                "{\"prompt\":\"abc\",\"response\":\"defg\"}\n{\"prompt\":\"hij\",\"response\":"
                "\"klmnopqrs\"}\n");
  spec::RunSpec run = run_on(folder_.path("t.jsonl"));
  run.data.validation_share = 0;
  const auto loader = open(run);
  ASSERT_TRUE(loader);
  const Batch batch = loader->load(Split::train, 0, 1).value();
  const std::vector<int32_t> expected = {-1, -1, 'd', 'e', 'f', 'g', 256, -1,
                                         -1, -1, 'k', 'l', 'm', 'n', 'o', 'p'};
  EXPECT_EQ(batch.targets, expected);
  EXPECT_EQ(batch.valid_tokens, 11);
  EXPECT_EQ(batch.target_bytes, 10);
}

TEST_F(LoaderTest, sources_are_mixed_by_weight) {
  spec::RunSpec run = run_on(folder_.write("a.txt", std::string(1000, 'a')));
  run.data.sources.push_back({.path = folder_.write("b.txt", std::string(3000, 'b')), .weight = 3});
  const auto loader = open(run);
  ASSERT_TRUE(loader);
  int64_t of_b = 0;
  for (int64_t n = 0; n < 1000; ++n) {
    of_b += loader->load(Split::train, n, 1)->tokens[0] == 'b' ? 1 : 0;
    EXPECT_NEAR(double(of_b), 0.75 * double(n + 1), 1.0) << n;
  }
}

TEST_F(LoaderTest, text_is_tokenised_once_and_again_when_it_changes) {
  const std::string path = folder_.write("a.txt", some_text(500, 3));
  const auto entries = [&] {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache())) {
      count += entry.path().extension() == ".json" ? 1 : 0;
    }
    return count;
  };
  const std::string text = open(run_on(path))->text(Split::train).value();
  EXPECT_EQ(open(run_on(path))->text(Split::train).value(), text);
  EXPECT_EQ(entries(), 1);
  folder_.write("a.txt", some_text(600, 4));
  EXPECT_NE(open(run_on(path))->text(Split::train).value(), text);
  EXPECT_EQ(entries(), 2);
}

TEST_F(LoaderTest, a_spoilt_cache_is_made_again) {
  const std::string path = folder_.write("a.txt", some_text(500, 3));
  const std::string text = open(run_on(path))->text(Split::train).value();
  int spoilt = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cache())) {
    if (entry.path().extension() != ".bin") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20);
    file.write("\xff\x7f\xff\x7f", 4);
    ++spoilt;
  }
  ASSERT_EQ(spoilt, 1);
  EXPECT_EQ(open(run_on(path))->text(Split::train).value(), text);
}

TEST_F(LoaderTest, refuses_bad_input_with_a_word) {
  folder_.write("empty.txt", "");
  folder_.write("short.txt", "tiny");
  folder_.write("t/page.html", "<p>");
  folder_.write("t.gz", "\x1f\x8b");
  folder_.write("bad.jsonl", "{\"text\":\"fine\"}\n{\"text\":\n");
  folder_.write("keys.jsonl", "{\"body\":\"fine\"}\n");
  folder_.write("ids.bin", std::string("\x2c\x01", 2) + std::string(200, '\0'));
  const struct {
    const char* file;
    const char* says;
  } cases[] = {{"none.txt", "no such file"},
               {"empty.txt", "is empty"},
               {"short.txt", "short.txt: 5 tokens are too few"},
               {"t", "no text in this folder"},
               {"t.gz", "unpack"},
               {"bad.jsonl", "bad.jsonl:2: not JSON"},
               {"keys.jsonl", "keys.jsonl:1"},
               {"ids.bin", "token 300 at position 0"}};
  for (const auto& c : cases) {
    EXPECT_THAT(error_of(run_on(folder_.path(c.file))), HasSubstr(c.says)) << c.file;
  }
  spec::RunSpec run = run_on(folder_.path("short.txt"));
  run.data.validation_share = 0;
  EXPECT_THAT(error_of(run), HasSubstr("fewer than one sequence"));
  run.model.vocab_size = 256;
  EXPECT_THAT(error_of(run), HasSubstr("set it to 257 or more"));
  run = run_on(folder_.write("a.txt", some_text(500, 5)));
  run.data.validation_share = 0;
  const auto batch = open(run)->load(Split::validation, 0, 1);
  ASSERT_FALSE(batch);
  EXPECT_THAT(batch.error().message, HasSubstr("validation_share"));
  EXPECT_THAT(open_loader(run, folder_.path("a.txt/x")).error().message, HasSubstr("a.txt"));
}

TEST_F(LoaderTest, the_prefetcher_delivers_in_order_and_stops_at_any_time) {
  const auto loader = open(run_on(folder_.write("a.txt", some_text(3000, 6))));
  ASSERT_TRUE(loader);
  const auto request = [](int64_t i) { return Prefetcher::Request{Split::train, 2 * i, 2}; };
  for (int64_t taken : {0, 1, 20}) {
    Prefetcher prefetcher(*loader, request, 3);
    for (int64_t i = 0; i < taken; ++i) {
      EXPECT_EQ(prefetcher.next()->tokens, loader->load(Split::train, 2 * i, 2)->tokens);
    }
  }
}

TEST_F(LoaderTest, the_prefetcher_delivers_errors_in_their_turn) {
  spec::RunSpec run = run_on(folder_.write("a.txt", some_text(3000, 6)));
  run.data.validation_share = 0;
  const auto loader = open(run);
  ASSERT_TRUE(loader);
  Prefetcher prefetcher(
      *loader,
      [](int64_t i) {
        return Prefetcher::Request{i == 2 ? Split::validation : Split::train, i, 1};
      },
      8);
  EXPECT_TRUE(prefetcher.next());
  EXPECT_TRUE(prefetcher.next());
  EXPECT_FALSE(prefetcher.next());
  EXPECT_FALSE(prefetcher.next());
}

}  // namespace
}  // namespace fivefold::data
