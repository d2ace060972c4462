// Byte-level BPE training: count the words of the text once, then merge the commonest pair of
// neighbours again and again, touching only the words that hold it.
//
// Source   Sennrich et al., "Neural machine translation of rare words with subword units", ACL
// 2016.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>

#include "data/byte_alphabet.hpp"
#include "data/byte_pairs.hpp"
#include "data/pretokenizer.hpp"
#include "data/tokenizer.hpp"

namespace fivefold::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Word {
  std::vector<int32_t> ids;
  int64_t count = 0;
};

Result<std::vector<Word>> count_words(std::span<const std::string_view> texts) {
  const Pretokenizer pretokenizer = TRY(Pretokenizer::compile({std::string(kGpt2Pattern)}));
  Pretokenizer::Scratch scratch(pretokenizer);
  std::unordered_map<std::string_view, int64_t> counts;  // into the texts
  for (const std::string_view text : texts) {
    for (const std::string_view piece : pretokenizer.split(text, scratch)) ++counts[piece];
  }
  std::vector<Word> words;
  words.reserve(counts.size());
  for (const auto& [piece, count] : counts) {
    Word& word = words.emplace_back();
    word.count = count;
    for (const char byte : piece) word.ids.push_back(uint8_t(byte));
  }
  return words;
}

class Trainer {
 public:
  explicit Trainer(std::vector<Word> words) : words_(std::move(words)) {
    for (int byte = 0; byte < 256; ++byte) tokens_.emplace_back(1, char(byte));
    for (int32_t id = 0; id < 256; ++id) ids_[tokens_[size_t(id)]] = id;
    for (int32_t w = 0; w < int32_t(words_.size()); ++w) {
      const Word& word = words_[size_t(w)];
      for (size_t i = 0; i + 1 < word.ids.size(); ++i) {
        add(word.ids[i], word.ids[i + 1], word.count).words.push_back(w);
      }
    }
    for (const auto& [pair, occurrence] : pairs_) push(pair, occurrence.count);
  }

  // Until there are `tokens` of them, or no pair occurs twice.
  void run(size_t tokens) {
    while (tokens_.size() < tokens && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const int64_t count = pairs_[best.pair].count;
      if (count != best.count) {  // it has lost occurrences since; look again when its turn comes
        push(best.pair, count);
      } else {
        merge(best.pair);
      }
    }
  }

  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::vector<Merge>& merges() const { return merges_; }

 private:
  struct Occurrence {
    int64_t count = 0;
    std::vector<int32_t> words;  // that hold the pair, or once did; some twice
  };
  struct Candidate {
    int64_t count;
    uint64_t pair;
  };
  struct Later {  // commonest first, then smaller in bytes
    const Trainer* trainer;
    bool operator()(const Candidate& a, const Candidate& b) const {
      if (a.count != b.count) return a.count < b.count;
      const auto& tokens = trainer->tokens_;
      const int left = tokens[size_t(left_of(a.pair))].compare(tokens[size_t(left_of(b.pair))]);
      if (left != 0) return left > 0;
      return tokens[size_t(right_of(a.pair))] > tokens[size_t(right_of(b.pair))];
    }
  };

  static int32_t left_of(uint64_t pair) { return int32_t(pair >> 32); }
  static int32_t right_of(uint64_t pair) { return int32_t(pair); }

  Occurrence& add(int32_t left, int32_t right, int64_t count) {
    Occurrence& occurrence = pairs_[uint64_t(uint32_t(left)) << 32 | uint32_t(right)];
    occurrence.count += count;
    return occurrence;
  }
  void push(uint64_t pair, int64_t count) {
    if (count >= 2) queue_.push({count, pair});
  }

  void merge(uint64_t pair) {
    const int32_t left = left_of(pair), right = right_of(pair);
    std::string bytes = tokens_[size_t(left)] + tokens_[size_t(right)];
    // Two pairs can spell the same token; it keeps its first id.
    const int32_t into = ids_.try_emplace(bytes, int32_t(tokens_.size())).first->second;
    if (into == int32_t(tokens_.size())) tokens_.push_back(std::move(bytes));
    merges_.push_back({left, right, into});

    std::vector<uint64_t> grown;
    for (const int32_t w : std::exchange(pairs_[pair].words, {})) {
      if (!holds(words_[size_t(w)], left, right)) continue;
      merge_in(w, left, right, into, grown);
    }
    std::sort(grown.begin(), grown.end());
    grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
    for (const uint64_t other : grown) push(other, pairs_[other].count);
  }

  static bool holds(const Word& word, int32_t left, int32_t right) {
    for (size_t i = 0; i + 1 < word.ids.size(); ++i) {
      if (word.ids[i] == left && word.ids[i + 1] == right) return true;
    }
    return false;
  }

  void merge_in(int32_t w, int32_t left, int32_t right, int32_t into,
                std::vector<uint64_t>& grown) {
    Word& word = words_[size_t(w)];
    std::vector<int32_t>& ids = word.ids;
    for (size_t i = 0; i + 1 < ids.size(); ++i) add(ids[i], ids[i + 1], -word.count);
    size_t out = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool match = i + 1 < ids.size() && ids[i] == left && ids[i + 1] == right;
      ids[out++] = match ? into : ids[i];
      if (match) ++i;
    }
    ids.resize(out);
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      Occurrence& occurrence = add(ids[i], ids[i + 1], word.count);
      if (ids[i] != into && ids[i + 1] != into) continue;
      occurrence.words.push_back(w);
      grown.push_back(uint64_t(uint32_t(ids[i])) << 32 | uint32_t(ids[i + 1]));
    }
  }

  std::vector<Word> words_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<Merge> merges_;
  std::unordered_map<uint64_t, Occurrence> pairs_;
  std::priority_queue<Candidate, std::vector<Candidate>, Later> queue_{Later{this}};
};

std::string to_tokenizer_json(const Trainer& trainer) {
  constexpr const char* end_of_text = "<|endoftext|>";
  const auto& tokens = trainer.tokens();
  OrderedJson vocabulary = OrderedJson::object();
  for (size_t id = 0; id < tokens.size(); ++id) {
    vocabulary.emplace(to_byte_alphabet(tokens[id]), id);
  }
  vocabulary.emplace(end_of_text, tokens.size());
  OrderedJson merges = OrderedJson::array();
  for (const Merge& merge : trainer.merges()) {
    merges.push_back(to_byte_alphabet(tokens[size_t(merge.left)]) + " " +
                     to_byte_alphabet(tokens[size_t(merge.right)]));
  }
  const OrderedJson byte_level = {{"type", "ByteLevel"},
                                  {"add_prefix_space", false},
                                  {"trim_offsets", true},
                                  {"use_regex", true}};
  const OrderedJson json = {{"version", "1.0"},
                            {"truncation", nullptr},
                            {"padding", nullptr},
                            {"added_tokens", OrderedJson::array({{{"id", tokens.size()},
                                                                  {"content", end_of_text},
                                                                  {"single_word", false},
                                                                  {"lstrip", false},
                                                                  {"rstrip", false},
                                                                  {"normalized", false},
                                                                  {"special", true}}})},
                            {"normalizer", nullptr},
                            {"pre_tokenizer", byte_level},
                            {"post_processor", nullptr},
                            {"decoder", byte_level},
                            {"model",
                             {{"type", "BPE"},
                              {"dropout", nullptr},
                              {"unk_token", nullptr},
                              {"continuing_subword_prefix", nullptr},
                              {"end_of_word_suffix", nullptr},
                              {"fuse_unk", false},
                              {"byte_fallback", false},
                              {"vocab", std::move(vocabulary)},
                              {"merges", std::move(merges)}}}};
  return json.dump(1) + "\n";
}

}  // namespace

Result<std::string> train_bpe(std::span<const std::string_view> texts, int32_t vocab_size) {
  if (vocab_size < 257) {
    return invalid_input("vocab_size = {}: must be 257 or more: 256 bytes and the end of text",
                         vocab_size);
  }
  Trainer trainer(TRY(count_words(texts)));
  trainer.run(size_t(vocab_size) - 1);
  const auto reached = int64_t(trainer.tokens().size()) + 1;
  if (reached < vocab_size) {
    return invalid_input(
        "vocab_size = {}: after {} tokens no pair of this text occurs twice; give more text or ask "
        "for {} or fewer",
        vocab_size, reached, reached);
  }
  return to_tokenizer_json(trainer);
}

}  // namespace fivefold::data
