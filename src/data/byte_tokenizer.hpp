#pragma once

#include "data/tokenizer.hpp"

namespace fivefold::data {

// One token a byte, and 256 for the end of a text.
class ByteTokenizer final : public Tokenizer {
 public:
  std::string name() const override { return "byte"; }
  int32_t vocab_size() const override { return 257; }
  int32_t end_of_text() const override { return 256; }
  std::vector<int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  int32_t byte_length(int32_t id) const override { return id >= 0 && id < 256 ? 1 : 0; }
  uint64_t fingerprint() const override;
};

}  // namespace fivefold::data
