#include "data/ngram.hpp"

#include <bit>
#include <cmath>

#include "base/check.hpp"

namespace fivefold::data {
namespace {

constexpr int kFitRounds = 40;  // of EM; the weights stand still long before

size_t byte_at(std::string_view text, size_t i) { return uint8_t(text[i]); }

double share(uint32_t part, uint64_t whole) { return whole > 0 ? double(part) / double(whole) : 0; }

}  // namespace

void ByteTrigram::count(std::string_view text) {
  trigrams_.assign(size_t{1} << 24, 0);
  bigrams_.assign(size_t{1} << 16, 0);
  trigram_contexts_.assign(size_t{1} << 16, 0);
  bigram_contexts_.assign(256, 0);
  bytes_.assign(256, 0);
  total_ = text.size();
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t c = byte_at(text, i);
    ++bytes_[c];
    if (i < 1) continue;
    const size_t b = byte_at(text, i - 1);
    ++bigrams_[b << 8 | c];
    ++bigram_contexts_[b];
    if (i < 2) continue;
    const size_t a = byte_at(text, i - 2);
    ++trigrams_[a << 16 | b << 8 | c];
    ++trigram_contexts_[a << 8 | b];
  }
}

ByteTrigram::Event ByteTrigram::event_at(std::string_view text, size_t i) const {
  const size_t c = byte_at(text, i);
  Event event{0, 0, share(bytes_[c], total_), 0, 0};
  if (i < 1) return event;
  const size_t b = byte_at(text, i - 1);
  event.f2 = share(bigrams_[b << 8 | c], bigram_contexts_[b]);
  event.bucket2 = std::bit_width(bigram_contexts_[b]);
  if (i < 2) return event;
  const size_t ab = byte_at(text, i - 2) << 8 | b;
  event.f3 = share(trigrams_[ab << 8 | c], trigram_contexts_[ab]);
  event.bucket3 = std::bit_width(trigram_contexts_[ab]);
  return event;
}

double ByteTrigram::probability(const Event& event) const {
  const double l3 = lambda3_[size_t(event.bucket3)], l2 = lambda2_[size_t(event.bucket2)];
  const double p1 = lambda1_ * event.f1 + (1 - lambda1_) / 256;
  const double p2 = l2 * event.f2 + (1 - l2) * p1;
  return l3 * event.f3 + (1 - l3) * p2;
}

void ByteTrigram::fit(std::string_view held_out) {
  lambda3_.fill(0.5);
  lambda2_.fill(0.5);
  lambda3_[0] = lambda2_[0] = 0;  // contexts never seen have no frequencies
  lambda1_ = 0.5;
  for (int round = 0; round < kFitRounds; ++round) {
    // How often each choice is expected to have been taken, and how often there was one. The small
    // start keeps a choice that held-out text never needed from becoming impossible.
    struct Choice {
      double taken = 0.01, all = 0.02;
    };
    std::array<Choice, kBuckets> three, two;
    Choice one;
    for (size_t i = 0; i < held_out.size(); ++i) {
      const Event event = event_at(held_out, i);
      const double p = probability(event);
      const double l3 = lambda3_[size_t(event.bucket3)], l2 = lambda2_[size_t(event.bucket2)];
      const double from3 = l3 * event.f3 / p;
      const double from2 = (1 - l3) * l2 * event.f2 / p;
      const double from1 = (1 - l3) * (1 - l2) * lambda1_ * event.f1 / p;
      three[size_t(event.bucket3)].taken += from3;
      three[size_t(event.bucket3)].all += 1;
      two[size_t(event.bucket2)].taken += from2;
      two[size_t(event.bucket2)].all += 1 - from3;
      one.taken += from1;
      one.all += 1 - from3 - from2;
    }
    for (size_t b = 1; b < kBuckets; ++b) {
      lambda3_[b] = three[b].taken / three[b].all;
      lambda2_[b] = two[b].taken / two[b].all;
    }
    lambda1_ = one.taken / one.all;
  }
}

void ByteTrigram::train(std::string_view text) {
  CHECK(text.size() >= 20, "{} bytes of text", text.size());
  const size_t kept = text.size() - text.size() / 10;
  count(text.substr(0, kept));
  fit(text.substr(kept));
  count(text);
}

double ByteTrigram::bits_per_byte(std::string_view text) const {
  CHECK(total_ > 0 && !text.empty());
  double bits = 0;
  for (size_t i = 0; i < text.size(); ++i) bits -= std::log2(probability(event_at(text, i)));
  return bits / double(text.size());
}

}  // namespace fivefold::data
