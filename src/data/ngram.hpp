#pragma once
// The baseline that a trained model has to beat: a trigram model of bytes.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fivefold::data {

// Mixes the relative frequencies of a byte after the two, the one, and the zero bytes before it,
// and the uniform distribution:
//
//   p(c | a b) = λ3 f(c | a b) + (1 - λ3) (λ2 f(c | b) + (1 - λ2) (λ1 f(c) + (1 - λ1) / 256))
//
// where λ3 depends on how often a b was seen and λ2 on how often b was, in powers of two. The last
// tenth of the training text is held out to fit the λ by expectation maximisation; the frequencies
// are then counted on the whole.
//
// Source   Jelinek & Mercer, "Interpolated estimation of Markov source parameters from sparse
// data",
//          1980.
class ByteTrigram {
 public:
  // Requires text.size() >= 20.
  void train(std::string_view text);

  // Mean of -log2 p over the bytes of `text`; the first two are judged with the context there is.
  // Requires train, and a text that is not empty.
  double bits_per_byte(std::string_view text) const;

 private:
  static constexpr int kBuckets = 33;  // 0, then 1, 2-3, 4-7, … occurrences of the context

  struct Event {        // one byte and its context
    double f3, f2, f1;  // relative frequencies
    int bucket3, bucket2;
  };
  void count(std::string_view text);
  void fit(std::string_view held_out);
  Event event_at(std::string_view text, size_t i) const;
  double probability(const Event& event) const;

  std::vector<uint32_t> trigrams_, bigrams_, trigram_contexts_, bigram_contexts_, bytes_;
  uint64_t total_ = 0;
  std::array<double, kBuckets> lambda3_{}, lambda2_{};
  double lambda1_ = 0.5;
};

}  // namespace fivefold::data
