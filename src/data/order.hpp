#pragma once
// Which sample comes n-th: a mixture picks the source, a permutation the place in it. Both are
// functions of n alone, in constant time and memory, so the order cannot depend on ranks.

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace fivefold::data {

// A pseudo-random permutation of 0 … size-1 for each (seed, stream, epoch): an unbalanced Feistel
// network over the next power of two, walked until it lands inside (Black & Rogaway, "Ciphers with
// arbitrary finite domains", CT-RSA 2002).
class Permutation {
 public:
  // Requires size >= 1.
  Permutation(uint64_t size, uint64_t seed, uint64_t stream, uint64_t epoch);
  uint64_t operator()(uint64_t index) const;

 private:
  uint64_t scramble(uint64_t value) const;
  uint64_t size_;
  int low_bits_, high_bits_;
  Random random_;
  uint64_t epoch_;
};

// Assigns samples to sources so that after any n samples each source has had n times its share,
// give or take one per level of a binary tree over the sources: no source waits, none drifts.
class Mixture {
 public:
  struct Pick {
    int64_t source = 0;
    int64_t index = 0;  // how many samples of this source came before
  };
  // Requires weights >= 0 with a positive sum.
  explicit Mixture(std::span<const double> weights);
  Pick pick(int64_t n) const;

 private:
  struct Node {
    int64_t left = -1, right = -1;  // nodes; both -1 at a leaf
    int64_t source = -1;
    uint64_t left_share = 0;  // of 2^63
  };
  int64_t build(std::span<const double> weights, int64_t first);
  std::vector<Node> nodes_;
  int64_t root_ = 0;
};

}  // namespace fivefold::data
