#include "data/order.hpp"

#include <bit>
#include <cmath>
#include <numeric>

#include "base/check.hpp"

namespace fivefold::data {
namespace {
constexpr int kFeistelRounds = 8;
constexpr uint64_t kWhole = uint64_t{1} << 63;
}  // namespace

Permutation::Permutation(uint64_t size, uint64_t seed, uint64_t stream, uint64_t epoch)
    : size_(size), random_(seed, stream), epoch_(epoch) {
  CHECK(size >= 1);
  const int bits = std::bit_width(size - 1);
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
}

uint64_t Permutation::scramble(uint64_t value) const {
  uint64_t low = value & ((uint64_t{1} << low_bits_) - 1), high = value >> low_bits_;
  // Random's block number has room for one half (at most 32 bits), the round and the epoch; the
  // epoch is spread over the key's words so that neighbouring epochs share no block.
  const auto noise = [&](uint64_t half, int round) {
    const Philox words = random_.block(half << 3 | uint64_t(round));
    return philox(words, {uint32_t(epoch_), uint32_t(epoch_ >> 32)})[0];
  };
  for (int round = 0; round < kFeistelRounds; round += 2) {
    high ^= noise(low, round) & ((uint64_t{1} << high_bits_) - 1);
    low ^= noise(high, round + 1) & ((uint64_t{1} << low_bits_) - 1);
  }
  return high << low_bits_ | low;
}

uint64_t Permutation::operator()(uint64_t index) const {
  CHECK(index < size_);
  if (size_ == 1) return 0;
  do {
    index = scramble(index);
  } while (index >= size_);
  return index;
}

Mixture::Mixture(std::span<const double> weights) {
  CHECK(!weights.empty());
  root_ = build(weights, 0);
}

int64_t Mixture::build(std::span<const double> weights, int64_t first) {
  Node node;
  if (weights.size() == 1) {
    node.source = first;
  } else {
    const size_t half = weights.size() / 2;
    const double left = std::accumulate(weights.begin(), weights.begin() + int64_t(half), 0.0);
    const double all = std::accumulate(weights.begin() + int64_t(half), weights.end(), left);
    node.left_share = all > 0 ? uint64_t(std::llround(left / all * double(kWhole >> 1))) << 1 : 0;
    node.left = build(weights.first(half), first);
    node.right = build(weights.subspan(half), first + int64_t(half));
  }
  nodes_.push_back(node);
  return int64_t(nodes_.size()) - 1;
}

Mixture::Pick Mixture::pick(int64_t n) const {
  int64_t at = root_;
  while (nodes_[size_t(at)].left >= 0) {
    const Node& node = nodes_[size_t(at)];
    // The left side has had round(m * share) of the first m samples that came here.
    const auto left_of = [&](int64_t m) {
      return int64_t(((unsigned __int128)(uint64_t(m)) * node.left_share + kWhole / 2) >> 63);
    };
    const int64_t before = left_of(n);
    const bool left = left_of(n + 1) > before;
    at = left ? node.left : node.right;
    n = left ? before : n - before;
  }
  return {nodes_[size_t(at)].source, n};
}

}  // namespace fivefold::data
