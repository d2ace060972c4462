#include "data/sentencepiece.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <map>

#include "base/random.hpp"
#include "data/test_folder.hpp"

namespace fivefold::data {
namespace {

using testing::HasSubstr;

class SentencePieceTest : public testing::Test {
 protected:
  // Trains a model as Llama's was trained, with `changes` to the flags; returns its path.
  std::string train(const std::map<std::string, std::string>& changes = {}) {
    std::string text;
    const Random random(1, 1);
    const char* words[] = {"the", "cat", "sat", "on", "a", "mat", "and", "then", "that", "tea"};
    for (uint64_t line = 0; line < 200; ++line) {
      for (uint64_t i = 0; i < 12; ++i)
        text += std::string(words[random.below(line * 12 + i, 10)]) + " ";
      text += "\n";
    }
    std::map<std::string, std::string> flags = {{"input", folder_.write("text.txt", text)},
                                                {"model_prefix", folder_.path("m")},
                                                {"model_type", "bpe"},
                                                {"vocab_size", "300"},
                                                {"byte_fallback", "true"},
                                                {"normalization_rule_name", "identity"},
                                                {"remove_extra_whitespaces", "false"},
                                                {"minloglevel", "4"}};
    for (const auto& [flag, value] : changes) flags[flag] = value;
    std::string line;
    for (const auto& [flag, value] : flags) line += "--" + flag + "=" + value + " ";
    const auto status = sentencepiece::SentencePieceTrainer::Train(line);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return folder_.path("m.model");
  }
  static std::string error_of(const std::string& path) {
    const auto tokenizer = load_tokenizer(path);
    return tokenizer ? "" : tokenizer.error().message;
  }
  TestFolder folder_;
};

TEST_F(SentencePieceTest, text_comes_back_whatever_it_is) {
  const auto tokenizer = load_tokenizer(train()).value();
  EXPECT_EQ(tokenizer->vocab_size(), 300);
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  EXPECT_EQ(tokenizer->prefix_bytes(), 1);
  const Random random(7, 7);
  const std::string parts[] = {"the cat", " ",       "  ",           "\n", "é",
                               "日本",    "\xff",    "\xe2\x96\x81", "12", std::string(1, '\0'),
                               "mat ",    "\xe2\x96"};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::string text;
    for (uint64_t i = 0; i < 20; ++i) text += parts[random.below(seed * 20 + i, std::size(parts))];
    const std::vector<int32_t> ids = tokenizer->encode(text);
    ASSERT_EQ(tokenizer->decode(ids), text) << seed;
    // Continued text joins without a space.
    std::vector<int32_t> both = ids;
    const std::vector<int32_t> more = tokenizer->encode_continuation(text);
    both.insert(both.end(), more.begin(), more.end());
    ASSERT_EQ(tokenizer->decode(both), text + text) << seed;
    int64_t bytes = 0;
    for (const int32_t id : more) bytes += tokenizer->byte_length(id);
    ASSERT_EQ(bytes, int64_t(text.size())) << seed;
  }
}

TEST_F(SentencePieceTest, words_become_pieces_and_control_pieces_have_no_bytes) {
  const auto tokenizer = load_tokenizer(train()).value();
  EXPECT_LE(tokenizer->encode("the cat sat").size(), 4U);
  int64_t bytes = 0;
  for (const int32_t id : tokenizer->encode("the cat sat")) bytes += tokenizer->byte_length(id);
  EXPECT_EQ(bytes, 12);  // with the space put before it
  for (const int32_t control : {0, 1, 2}) EXPECT_EQ(tokenizer->byte_length(control), 0);
}

TEST_F(SentencePieceTest, models_that_lose_text_are_refused) {
  EXPECT_THAT(error_of(train({{"normalization_rule_name", "nmt_nfkc"}})),
              HasSubstr("normaliser changes the text"));
  EXPECT_THAT(error_of(train({{"remove_extra_whitespaces", "true"}})),
              HasSubstr("normaliser changes the text"));
  EXPECT_THAT(error_of(train({{"byte_fallback", "false"}, {"vocab_size", "40"}})),
              HasSubstr("byte_fallback"));
}

TEST_F(SentencePieceTest, models_without_a_space_before_the_text) {
  const auto tokenizer = load_tokenizer(train({{"add_dummy_prefix", "false"}})).value();
  EXPECT_EQ(tokenizer->prefix_bytes(), 0);
  for (const char* text : {"the cat", " the", "", " "})
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

}  // namespace
}  // namespace fivefold::data
