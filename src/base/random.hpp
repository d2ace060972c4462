#pragma once
// Counter-based random numbers: every value is a pure function of (seed, stream, index), so weights,
// dropout masks and data order do not depend on ranks, threads, layout or the order of calls.
//
// Source   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Philox4x32-10).

#include <array>
#include <cstdint>
#include <string_view>

namespace fivefold {

using Philox = std::array<uint32_t, 4>;

// Ten rounds of Philox 4x32. Passes the published known-answer vectors (random_test.cpp).
constexpr Philox philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

// One endless, randomly accessible sequence.
class Random {
 public:
  // `stream` separates purposes that share a seed; hash a name with `stream_of`.
  constexpr Random(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  // Four 32-bit words of block `index`.
  constexpr Philox block(uint64_t index) const {
    return philox({uint32_t(index), uint32_t(index >> 32), uint32_t(stream_),
                   uint32_t(stream_ >> 32)},
                  {uint32_t(seed_), uint32_t(seed_ >> 32)});
  }
  constexpr uint64_t bits(uint64_t index) const {
    const Philox words = block(index);
    return uint64_t{words[0]} | uint64_t{words[1]} << 32;
  }
  // Uniform in [0, 1), 53 bits.
  constexpr double uniform(uint64_t index) const { return double(bits(index) >> 11) * 0x1p-53; }
  // Uniform in [0, n) without bias that matters: 64-bit multiply-shift. Requires n > 0.
  constexpr uint64_t below(uint64_t index, uint64_t n) const {
    return uint64_t((unsigned __int128)(bits(index)) * n >> 64);
  }
  // Standard normal (Box-Muller on the words of block `index`).
  double normal(uint64_t index) const;

 private:
  uint64_t seed_, stream_;
};

// FNV-1a, 64 bit: a stable stream number for a name such as "model.layers.3.self_attn.q_proj.weight".
constexpr uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return hash;
}

}  // namespace fivefold
