#include "data/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "base/random.hpp"
#include "data/byte_alphabet.hpp"
#include "data/byte_pairs.hpp"
#include "data/nfc.hpp"
#include "data/pretokenizer.hpp"
#include "data/test_folder.hpp"
#include "data/tokenizer_json.hpp"
#include "data/utf8.hpp"

namespace fivefold::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string random_bytes(uint64_t seed, int64_t length) {
  const Random random(seed, 1);
  std::string text;
  for (int64_t i = 0; i < length; ++i) text.push_back(char(random.below(uint64_t(i), 256)));
  return text;
}

// Words of few letters, so that merges apply, with some of everything else.
std::string random_text(uint64_t seed, int64_t length) {
  static const std::vector<std::string> parts = {"a",  "b",    "ab",       "the", " ", "  ",   "\n",
                                                 "1",  "12",   "'s",       "'",   "é", "日本", "!",
                                                 "\t", "\xff", "\xe2\x82", "T",   "E", "\r\n"};
  const Random random(seed, 2);
  std::string text;
  for (int64_t i = 0; i < length; ++i) text += parts[random.below(uint64_t(i), parts.size())];
  return text;
}

std::string small_tokenizer() {
  const std::string text = random_text(1, 3000);
  const std::string_view texts[] = {text};
  return train_bpe(texts, 300).value();
}

std::vector<std::string> split(std::string_view pattern, std::string_view text) {
  const Pretokenizer pretokenizer = Pretokenizer::compile({std::string(pattern)}).value();
  Pretokenizer::Scratch scratch(pretokenizer);
  const auto& pieces = pretokenizer.split(text, scratch);
  return {pieces.begin(), pieces.end()};
}

TEST(TokenizerTest, bytes_are_themselves) {
  const auto tokenizer = load_tokenizer("byte").value();
  EXPECT_THAT(tokenizer->encode("a\xff"), ElementsAre('a', 0xff));
  const int32_t ids[] = {'h', 'i', 256};
  EXPECT_EQ(tokenizer->decode(ids), "hi");
  EXPECT_EQ(tokenizer->byte_length('h'), 1);
  EXPECT_EQ(tokenizer->byte_length(256), 0);
}

TEST(TokenizerTest, the_byte_alphabet_is_reversible_and_printable) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(char(byte));
  EXPECT_EQ(from_byte_alphabet(to_byte_alphabet(all)), all);
  // As GPT-2 writes a space and a newline.
  EXPECT_EQ(to_byte_alphabet(" a\n"),
            "\xC4\xA0"
            "a\xC4\x8A");
  EXPECT_FALSE(from_byte_alphabet(" "));
  EXPECT_FALSE(from_byte_alphabet("日"));
  EXPECT_FALSE(from_byte_alphabet("\xC4"));
}

TEST(TokenizerTest, utf8_is_told_from_other_bytes) {
  for (const char* good : {"a", "é", "日", "😀", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(utf8_character(good), std::strlen(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE6\x97", "\xF0\x9F\x98"}) {
    EXPECT_EQ(utf8_character(bad), 0U) << bad;
  }
}

TEST(TokenizerTest, cuts_text_as_gpt2_does) {
  EXPECT_THAT(split(kGpt2Pattern, "Hello world's  12 end!?\n\n x "),
              ElementsAre("Hello", " world", "'s", " ", " 12", " end", "!?", "\n\n", " x", " "));
  EXPECT_THAT(split(kGpt2Pattern, "日本 é\xff\xfe x"), ElementsAre("日本", " é", "\xff\xfe", " x"));
}

TEST(TokenizerTest, cuts_text_as_llama3_and_qwen2_do) {
  EXPECT_THAT(split(kLlama3Pattern, "I'LL (pay) 12345 \n\n x"),
              ElementsAre("I", "'LL", " (", "pay", ")", " ", "123", "45", " \n\n", " x"));
  EXPECT_THAT(split(kQwen2Pattern, "a 12"), ElementsAre("a", " ", "1", "2"));
}

TEST(TokenizerTest, spaces_are_unicodes_white_space) {
  EXPECT_THAT(split("\\s", "a\u00A0b\u180Ec\u3000"),
              ElementsAre("a", "\u00A0", "b\u180Ec", "\u3000"));
}

TEST(TokenizerTest, patterns_of_another_kind_are_refused) {
  for (const char* pattern :
       {"(a+)+", "(?<=a)b", "(a)\\1", "^a", "a$", "[[:alpha:]]", "\\d", "(?>a)", "(", "[\\S]",
        "\\p{Nonsense}", "(a){3}", "(*LIMIT_MATCH=1)a"}) {
    EXPECT_FALSE(Pretokenizer::compile({pattern})) << pattern;
  }
}

TEST(TokenizerTest, splitting_loses_no_byte) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (const std::string& text : {random_bytes(seed, 100), random_text(seed, 60)}) {
      for (const auto pattern : {kGpt2Pattern, kLlama3Pattern, kQwen2Pattern}) {
        std::string together;
        for (const std::string& piece : split(pattern, text)) together += piece;
        ASSERT_EQ(together, text) << seed;
      }
    }
  }
}

// Applies the earliest merge, the leftmost first, by scanning.
std::vector<int32_t> naive_merges(std::string_view piece, std::span<const Merge> merges) {
  std::vector<int32_t> ids;
  for (const char c : piece) ids.push_back(uint8_t(c));
  for (;;) {
    for (const Merge& merge : merges) {
      for (size_t i = 0; i + 1 < ids.size(); ++i) {
        if (ids[i] != merge.left || ids[i + 1] != merge.right) continue;
        ids[i] = merge.into;
        ids.erase(ids.begin() + int64_t(i) + 1);
        goto next;
      }
    }
    return ids;
  next:;
  }
}

TEST(TokenizerTest, fast_merges_equal_a_scan) {
  std::array<int32_t, 256> bytes;
  for (int i = 0; i < 256; ++i) bytes[size_t(i)] = i;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Random random(seed, 3);
    std::vector<Merge> merges;
    for (int32_t i = 0; i < 20; ++i) {
      const auto pick = [&](uint64_t n) {
        const auto id = int32_t(random.below(n, uint64_t(3 + i)));
        return id < 3 ? 'a' + id : 256 + id - 3;
      };
      merges.push_back({pick(uint64_t(2 * i)), pick(uint64_t(2 * i + 1)), 256 + i});
    }
    // A pair listed twice has its first rank.
    const BytePairs pairs(bytes, merges);
    for (const int64_t length : {1, 2, 7, 48, 49, 200}) {
      std::string piece;
      for (int64_t i = 0; i < length; ++i)
        piece.push_back(char('a' + random.below(uint64_t(1000 + i), 3)));
      std::vector<int32_t> ids;
      pairs.encode(piece, ids);
      ASSERT_EQ(ids, naive_merges(piece, merges)) << "seed " << seed << " length " << length;
    }
  }
}

TEST(TokenizerTest, text_comes_back_whatever_it_is) {
  const auto tokenizer = parse_tokenizer_json(small_tokenizer(), "t").value();
  EXPECT_EQ(tokenizer->vocab_size(), 300);
  EXPECT_EQ(tokenizer->end_of_text(), 299);
  EXPECT_EQ(tokenizer->byte_length(299), 0);
  EXPECT_TRUE(tokenizer->encode("").empty());
  for (uint64_t seed = 0; seed < 300; ++seed) {
    for (const std::string& text : {random_bytes(seed, 200), random_text(seed, 100)}) {
      const std::vector<int32_t> ids = tokenizer->encode(text);
      ASSERT_EQ(tokenizer->decode(ids), text) << seed;
      int64_t bytes = 0;
      for (const int32_t id : ids) bytes += tokenizer->byte_length(id);
      ASSERT_EQ(bytes, int64_t(text.size())) << seed;
      ASSERT_EQ(tokenizer->encode(text), ids) << seed;  // now from the cache
    }
  }
  // Ids that no encoder would write come back as text too.
  const Random random(5, 5);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<int32_t> ids;
    for (uint64_t i = 0; i < 30; ++i) ids.push_back(int32_t(random.below(seed * 30 + i, 299)));
    const std::string text = tokenizer->decode(ids);
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(TokenizerTest, encodes_on_many_threads) {
  const auto tokenizer = parse_tokenizer_json(small_tokenizer(), "t").value();
  const std::string text = random_text(9, 2000);
  const std::vector<int32_t> expected = tokenizer->encode(text);
  std::vector<std::vector<int32_t>> ids(4);
  std::vector<std::thread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) mine = tokenizer->encode(text);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& mine : ids) EXPECT_EQ(mine, expected);
}

// Counts everything anew for each merge.
std::vector<std::string> naive_training(const std::string& text, size_t tokens) {
  std::map<std::vector<std::string>, int64_t> words;
  for (const std::string& piece : split(kGpt2Pattern, text)) {
    std::vector<std::string> word;
    for (const char c : piece) word.emplace_back(1, c);
    ++words[word];
  }
  std::vector<std::string> merges;
  std::set<std::string> made;
  while (256 + made.size() < tokens) {
    std::map<std::pair<std::string, std::string>, int64_t> counts;
    for (const auto& [word, count] : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) counts[{word[i], word[i + 1]}] += count;
    }
    std::pair<std::string, std::string> best;
    int64_t most = 1;
    for (const auto& [pair, count] : counts) {
      if (count > most) best = pair, most = count;
    }
    if (most < 2) break;
    merges.push_back(to_byte_alphabet(best.first) + " " + to_byte_alphabet(best.second));
    made.insert(best.first + best.second);
    std::map<std::vector<std::string>, int64_t> merged;
    for (const auto& [word, count] : words) {
      std::vector<std::string> next;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool match =
            i + 1 < word.size() && word[i] == best.first && word[i + 1] == best.second;
        next.push_back(match ? word[i] + word[i + 1] : word[i]);
        if (match) ++i;
      }
      merged[next] += count;
    }
    words = merged;
  }
  return merges;
}

TEST(TokenizerTest, training_equals_counting_anew) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::string text =
        random_text(seed, 400) + random_bytes(seed, 200) + "aaaaaaa aaaaaaaaaaa aaa";
    const std::string_view texts[] = {text};
    const auto json = train_bpe(texts, 290);
    ASSERT_TRUE(json) << json.error().message;
    const std::vector<std::string> merges = naive_training(text, 289);
    // The merges stand at the end of the file, one a line.
    std::string expected = "\"merges\": [";
    for (const std::string& merge : merges) {
      expected += (expected.back() == '[' ? "\n   " : ",\n   ");
      for (const char c : "\"" + merge)
        expected += c == '\\' ? std::string("\\\\") : std::string(1, c);
      expected += '"';
    }
    ASSERT_THAT(*json, HasSubstr(expected + "\n  ]")) << seed;
    EXPECT_EQ(train_bpe(texts, 290).value(), *json);
  }
}

TEST(TokenizerTest, training_says_when_there_is_too_little_text) {
  const std::string_view texts[] = {"ab ab"};
  EXPECT_THAT(train_bpe(texts, 256).error().message, HasSubstr("257"));
  EXPECT_THAT(train_bpe(texts, 400).error().message, HasSubstr("ask for 258 or fewer"));
  EXPECT_TRUE(train_bpe(texts, 258));
  EXPECT_TRUE(train_bpe({}, 257));
}

// A tokenizer.json by hand, `changes` replacing text in it.
std::string by_hand(const std::vector<std::pair<std::string, std::string>>& changes = {}) {
  std::string vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token = to_byte_alphabet(std::string(1, char(byte)));
    vocabulary += "\"" + (token == "\"" || token == "\\" ? "\\" + token : token) +
                  "\":" + std::to_string(byte) + ",";
  }
  std::string json = R"({"added_tokens":[
    {"id":261,"content":"<|end_of_text|>","special":true},
    {"id":262,"content":"<think>","special":false,"lstrip":false},
    {"id":263,"content":"<think>er","special":false}],
  "normalizer":null,
  "pre_tokenizer":{"type":"Sequence","pretokenizers":[
    {"type":"Split","pattern":{"Regex":"\\p{N}{1,3}| ?\\p{L}+|\\s+"},"behavior":"Isolated","invert":false},
    {"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},
  "model":{"type":"BPE","ignore_merges":false,"vocab":{)" +
                     vocabulary +
                     R"("ab":256,"bc":257,"abc":258,"abcd":259,"Ġa":260},
    "merges":["b c",["a","b"],["a","bc"]]}})";
  for (const auto& [from, to] : changes) {
    const size_t place = json.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    json.replace(place, from.size(), to);
  }
  return json;
}

TEST(TokenizerTest, reads_merges_as_strings_and_pairs) {
  const auto tokenizer = parse_tokenizer_json(by_hand(), "t").value();
  EXPECT_EQ(tokenizer->vocab_size(), 264);
  EXPECT_EQ(tokenizer->end_of_text(), 261);
  EXPECT_THAT(tokenizer->encode("abc"), ElementsAre(258));
  EXPECT_THAT(tokenizer->encode("abcd"), ElementsAre(258, 'd'));
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(256));
}

TEST(TokenizerTest, whole_pieces_skip_the_merges_when_the_file_says_so) {
  const auto tokenizer =
      parse_tokenizer_json(by_hand({{"\"ignore_merges\":false", "\"ignore_merges\":true"}}), "t")
          .value();
  EXPECT_THAT(tokenizer->encode("abcd"), ElementsAre(259));
  EXPECT_THAT(tokenizer->encode("abcde"), ElementsAre(258, 'd', 'e'));
}

TEST(TokenizerTest, added_tokens_are_cut_out_but_special_ones_are_text) {
  const auto tokenizer = parse_tokenizer_json(by_hand(), "t").value();
  EXPECT_THAT(tokenizer->encode("abc<think>abc<think>er"), ElementsAre(258, 262, 258, 263));
  EXPECT_EQ(tokenizer->byte_length(262), 7);
  const std::string text = "x<|end_of_text|>y<think";
  const std::vector<int32_t> ids = tokenizer->encode(text);
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 261), 0);
}

TEST(TokenizerTest, what_is_not_supported_is_refused_by_name) {
  const struct {
    std::vector<std::pair<std::string, std::string>> changes;
    const char* says;
  } cases[] = {
      {{{"\"type\":\"BPE\"", "\"type\":\"Unigram\""}}, "model type Unigram"},
      {{{"\"normalizer\":null", "\"normalizer\":{\"type\":\"Lowercase\"}"}},
       "normalizer Lowercase"},
      {{{"\"type\":\"Split\"", "\"type\":\"Metaspace\""}}, "pre-tokenizer Metaspace"},
      {{{"\"Isolated\"", "\"Removed\""}}, "behavior Removed"},
      {{{"\"invert\":false", "\"invert\":true"}}, "inverted"},
      {{{"\"add_prefix_space\":false", "\"add_prefix_space\":true"}}, "add_prefix_space"},
      {{{"{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}",
         "{\"type\":\"Digits\"}"}},
       "ByteLevel is missing"},
      {{{"\"lstrip\":false", "\"lstrip\":true"}}, "lstrip"},
      {{{"\"b c\"", "\"b z\""}}, "not in the vocabulary"},
      {{{"\"b c\"", "\"bc\""}}, "not a pair"},
      {{{"\"abc\":258", "\"abc\":257"}}, "two tokens have id 257"},
      {{{"\"abc\":258", "\"abc\":-1"}}, "id of token abc"},
      {{{"\"abc\":258", "\"abc\":99999999"}}, "id of token abc"},
      {{{"\"abcd\":259", "\"日\":259"}}, "not of the byte-level alphabet"},
      {{{"\"a\":97,", ""}}, "byte 97"},
      {{{"\"id\":261", "\"id\":260"}}, "two tokens have id 260"},
      {{{"\\\\p{N}{1,3}", "(a+)+"}}, "a repeated group"},
      {{{"{\"added", "["}}, "not JSON"},
  };
  for (const auto& c : cases) {
    const auto tokenizer = parse_tokenizer_json(by_hand(c.changes), "file.json");
    ASSERT_FALSE(tokenizer) << c.says;
    EXPECT_THAT(tokenizer.error().message, HasSubstr(c.says));
    EXPECT_THAT(tokenizer.error().message, HasSubstr("file.json: "));
  }
}

TEST(TokenizerTest, normalises_to_form_c_where_the_file_says_so) {
  const auto tokenizer =
      parse_tokenizer_json(by_hand({{"\"normalizer\":null", "\"normalizer\":{\"type\":\"NFC\"}"}}),
                           "t")
          .value();
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("e\u0301\xff")), "\u00E9\xff");
}

TEST(TokenizerTest, form_c_composes_and_orders) {
  const struct {
    const char* from;
    const char* to;
  } cases[] = {{"plain", "plain"},
               {"A\u030A", "\u00C5"},
               {"\u212B", "\u00C5"},               // a singleton
               {"a\u0301\u0323", "\u1EA1\u0301"},  // marks are ordered before they compose
               {"\u1E69", "\u1E69"},               // two marks, together again
               {"s\u0307\u0323", "\u1E69"},
               {"\u0958", "\u0915\u093C"},        // excluded from composition
               {"\u1112\u1161\u11AB", "\uD55C"},  // Hangul
               {"\uD55C", "\uD55C"},
               {"\u0344", "\u0308\u0301"},
               {"a\u0305\u0301", "a\u0305\u0301"},  // blocked by a mark of its own class
               {"\u0301x", "\u0301x"}};
  for (const auto& c : cases) EXPECT_EQ(to_nfc(c.from), c.to) << c.from;
  EXPECT_TRUE(is_surely_nfc("caf\u00E9"));
  EXPECT_FALSE(is_surely_nfc("e\u0301"));
}

TEST(TokenizerTest, loads_by_path_and_folder) {
  const TestFolder folder;
  folder.write("t/tokenizer.json", by_hand({{"<|end_of_text|>", "<|eot|>"}}));
  EXPECT_EQ(load_tokenizer(folder.path("t")).value()->end_of_text(), -1);
  folder.write("t/tokenizer_config.json", R"({"eos_token":{"content":"<|eot|>"}})");
  EXPECT_EQ(load_tokenizer(folder.path("t/tokenizer.json")).value()->end_of_text(), 261);
  folder.write("e/readme.txt", "x");
  folder.write("bad.model", "not a model");
  EXPECT_THAT(load_tokenizer(folder.path("none")).error().message, HasSubstr("no such tokenizer"));
  EXPECT_THAT(load_tokenizer(folder.path("e")).error().message, HasSubstr("no tokenizer.json"));
  EXPECT_THAT(load_tokenizer(folder.path("e/readme.txt")).error().message,
              HasSubstr(".json or .model"));
  EXPECT_THAT(load_tokenizer(folder.path("bad.model")).error().message,
              HasSubstr("not a SentencePiece"));
}

}  // namespace
}  // namespace fivefold::data
