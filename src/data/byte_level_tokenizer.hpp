#pragma once
// A byte-level BPE tokenizer, put together: added tokens, normalisation, pieces, merges.

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/byte_pairs.hpp"
#include "data/pretokenizer.hpp"
#include "data/tokenizer.hpp"

namespace fivefold::data {

// What a tokenizer.json comes to.
struct ByteLevelParts {
  std::string name;
  uint64_t fingerprint = 0;
  std::vector<std::string> token_bytes;  // by id; empty for special tokens and unused ids
  int32_t end_of_text = -1;
  std::array<int32_t, 256> byte_ids{};
  std::vector<Merge> merges;
  std::vector<std::string> patterns;
  bool normalise_nfc = false;
  // Pieces that are a token as a whole skip the merges.
  bool ignore_merges = false;
  std::unordered_map<std::string, int32_t> whole_tokens;  // with ignore_merges
  // Tokens that are cut out of the text before all else; the longest at a place wins.
  std::vector<std::pair<std::string, int32_t>> added_tokens;
};

class ByteLevelTokenizer final : public Tokenizer {
 public:
  // Errors   invalid_input: a pattern that is not supported.
  static Result<std::unique_ptr<Tokenizer>> make(ByteLevelParts parts);
  ~ByteLevelTokenizer() override;

  std::string name() const override { return parts_.name; }
  int32_t vocab_size() const override { return int32_t(parts_.token_bytes.size()); }
  int32_t end_of_text() const override { return parts_.end_of_text; }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  int32_t byte_length(int32_t id) const override;
  uint64_t fingerprint() const override { return parts_.fingerprint; }

 private:
  struct Scratch;
  ByteLevelTokenizer(ByteLevelParts parts, Pretokenizer pretokenizer);
  // One for each thread that is encoding; kept for its cache.
  std::unique_ptr<Scratch> take_scratch() const;
  void give_back(std::unique_ptr<Scratch> scratch) const;
  // Text without added tokens.
  void encode_plain(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;
  // The added token at the front of `text`: its index, or -1.
  int64_t added_at(std::string_view text) const;

  ByteLevelParts parts_;
  Pretokenizer pretokenizer_;
  BytePairs pairs_;
  std::array<bool, 256> starts_added_{};
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;
};

}  // namespace fivefold::data
