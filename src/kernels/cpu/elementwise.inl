// Conversions between float and bf16, and dropout.

// An output of this many bytes will not be in the cache when somebody reads it: streamed stores
// spare the read of what is overwritten.
constexpr int64_t streamed_bytes = int64_t{8} << 20;

template <class Pair>
void convert(const typename Pair::From* x, typename Pair::To* y, bool accumulate, int64_t n) {
  using To = typename Pair::To;
  const auto copy = [&](int64_t i, auto lanes) IN_ISA { write(y + i, read(x + i, lanes), lanes); };
  if (accumulate) {
    each_vec(n, [&](int64_t i, auto lanes) IN_ISA {
      write(y + i, read(y + i, lanes) + read(x + i, lanes), lanes);
    });
  } else if (n * int64_t(sizeof(To)) >= streamed_bytes) {
    constexpr int64_t unit = Vec::width * int64_t(sizeof(To));
    const int64_t past = int64_t(reinterpret_cast<uintptr_t>(y) % uintptr_t(unit));
    const int64_t head = past == 0 ? 0 : (unit - past) / int64_t(sizeof(To));
    if (head > 0) copy(0, head);
    int64_t i = head;
    for (; i + Vec::width <= n; i += Vec::width) Vec::load(x + i).stream(y + i);
    if (i < n) copy(i, n - i);
    end_of_stream();
  } else if constexpr (std::is_same_v<typename Pair::From, To>) {
    std::memcpy(y, x, size_t(n) * sizeof *x);
  } else {
    each_vec(n, copy);
  }
}

// One Philox block a lane, its words in the low halves.
typedef uint64_t BlockLanes __attribute__((vector_size(Vec::width * 4)));   // NOLINT
typedef uint32_t WordLanes __attribute__((vector_size(Vec::width * 4)));    // NOLINT
constexpr int64_t blocks_at_once = Vec::width / 2;

// The products of the low halves: of 64 bits, so nothing is lost.
inline void multiply_low(const BlockLanes* a, uint32_t b, BlockLanes* product) {
#if FIVEFOLD_ISA == 512
  *product = BlockLanes(_mm512_mul_epu32(__m512i(*a), _mm512_set1_epi64(b)));
#elif FIVEFOLD_ISA == 2
  *product = BlockLanes(_mm256_mul_epu32(__m256i(*a), _mm256_set1_epi64x(b)));
#else
  *product = (*a & 0xffffffff) * b;
#endif
}

// The words of Random::block (base/random.hpp) for the blocks from `first` on, one after the other.
inline void random_words(const uint64_t* seed_and_stream, uint64_t first, uint32_t* words) {
  uint64_t index[blocks_at_once];
  for (int64_t i = 0; i < blocks_at_once; ++i) index[i] = first + uint64_t(i);
  BlockLanes c[4], a, b;
  std::memcpy(&c[0], index, sizeof index);
  c[1] = c[0] >> 32;
  c[2] = BlockLanes{} + uint32_t(seed_and_stream[1]);
  c[3] = BlockLanes{} + (seed_and_stream[1] >> 32);
  auto low = uint32_t(seed_and_stream[0]), high = uint32_t(seed_and_stream[0] >> 32);
  for (int round = 0; round < 10; ++round) {
    multiply_low(&c[0], 0xD2511F53, &a);
    multiply_low(&c[2], 0xCD9E8D57, &b);
    c[0] = (b >> 32) ^ c[1] ^ low;
    c[1] = b;
    c[2] = (a >> 32) ^ c[3] ^ high;
    c[3] = a;
    low += 0x9E3779B9, high += 0xBB67AE85;
  }
  const BlockLanes front = (c[0] & 0xffffffff) | c[1] << 32;
  const BlockLanes back = (c[2] & 0xffffffff) | c[3] << 32;
  for (int64_t i = 0; i < blocks_at_once; ++i) {
    const uint64_t block[2] = {front[i], back[i]};
    std::memcpy(words + 4 * i, block, sizeof block);
  }
}

template <class T>
void dropout(Rows<T> x, DropoutMask mask, const int64_t* token_index, int64_t begin, int64_t end) {
  constexpr int64_t piece = 256;
  uint32_t words[piece];
  const float kept = float(mask.scale);
  uint32_t kept_bits;
  std::memcpy(&kept_bits, &kept, sizeof kept_bits);
  for (int64_t n = begin; n < end; ++n) {
    for (int64_t first = 0; first < x.columns; first += piece) {
      const int64_t count = x.columns - first < piece ? x.columns - first : piece;
      for (int64_t c = 0; c < count; c += 4 * blocks_at_once) {
        random_words(mask.seed_and_stream, DropoutMask::block_of(token_index[n], first + c),
                     words + c);
      }
      T* row = x[n] + first;
      each_vec(count, [&](int64_t i, auto lanes) IN_ISA {
        WordLanes bits;
        std::memcpy(&bits, words + i, sizeof bits);
        bits = WordLanes(bits >= WordLanes{} + mask.threshold) & (WordLanes{} + kept_bits);
        float factor[Vec::width];
        std::memcpy(factor, &bits, sizeof factor);
        write(row + i, read(row + i, lanes) * Vec::load(factor), lanes);
      });
    }
  }
}
