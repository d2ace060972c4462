#pragma once
// Which attention probabilities dropout keeps: a pure function of (random, token, head, key), so it
// is the same forward and backward, in every implementation and however a sequence is split.

#include "kernels/ops.hpp"

namespace fivefold::kernels {

// Bijective on 64 bits.    Source  Steele, Lea & Flood, OOPSLA 2014 (SplitMix64's finalizer).
constexpr uint64_t mix_bits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// The blocks of random words that belong to one query start here; each serves four keys.
constexpr uint64_t dropout_row(int64_t token, int64_t head) {
  return mix_bits(mix_bits(uint64_t(token)) + uint64_t(head));
}

// A word below this is dropped. Requires 0 <= rate < 1.
constexpr uint32_t dropout_threshold(double rate) { return uint32_t(rate * 0x1p32); }

constexpr bool attention_keeps(const AttentionDropout& dropout, int64_t token, int64_t head,
                               int64_t key) {
  const Philox words = dropout.random.block(dropout_row(token, head) + uint64_t(key / 4));
  return words[size_t(key % 4)] >= dropout_threshold(dropout.rate);
}

}  // namespace fivefold::kernels
