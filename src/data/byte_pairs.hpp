#pragma once
// The merges of a byte-level BPE: which two neighbouring tokens become which one, and in what
// order.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fivefold::data {

struct Merge {
  int32_t left, right, into;
};

class BytePairs {
 public:
  // `byte_ids`: the token of each byte. Earlier merges go first.
  BytePairs(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges);

  // Appends the ids of one piece: of all mergeable neighbours the earliest merge is applied, the
  // leftmost first, until none is left.
  // Cost     n log n for pieces of n bytes.
  void encode(std::string_view piece, std::vector<int32_t>& ids) const;

 private:
  struct Entry {
    uint64_t pair = UINT64_MAX;
    int32_t rank = 0, into = 0;
  };
  const Entry* find(int32_t left, int32_t right) const;
  void encode_short(std::string_view piece, std::vector<int32_t>& ids) const;
  void encode_long(std::string_view piece, std::vector<int32_t>& ids) const;

  std::array<int32_t, 256> byte_ids_;
  std::vector<Entry> table_;  // open addressing, a power of two long
  int shift_ = 0;
};

}  // namespace fivefold::data
