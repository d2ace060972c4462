#include "data/byte_pairs.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>

namespace fivefold::data {
namespace {

constexpr size_t kShort = 48;
constexpr int32_t kNever = std::numeric_limits<int32_t>::max();

uint64_t pair_of(int32_t left, int32_t right) {
  return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
}

size_t slot_of(uint64_t pair, int shift) { return size_t(pair * 0x9E3779B97F4A7C15 >> shift); }

}  // namespace

BytePairs::BytePairs(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges)
    : byte_ids_(byte_ids) {
  const size_t size = std::bit_ceil(std::max<size_t>(2 * merges.size(), 16));
  table_.resize(size);
  shift_ = 64 - std::countr_zero(size);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    const uint64_t pair = pair_of(merge.left, merge.right);
    size_t slot = slot_of(pair, shift_);
    while (table_[slot].pair != UINT64_MAX && table_[slot].pair != pair)
      slot = (slot + 1) & (size - 1);
    if (table_[slot].pair == pair) continue;  // listed twice: the earlier one wins
    table_[slot] = {pair, int32_t(rank), merge.into};
  }
}

const BytePairs::Entry* BytePairs::find(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  size_t slot = slot_of(pair, shift_);
  while (table_[slot].pair != pair) {
    if (table_[slot].pair == UINT64_MAX) return nullptr;
    slot = (slot + 1) & (table_.size() - 1);
  }
  return &table_[slot];
}

void BytePairs::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (piece.size() <= kShort) {
    encode_short(piece, ids);
  } else {
    encode_long(piece, ids);
  }
}

// Words: scanning them again for the earliest merge is faster than any queue.
void BytePairs::encode_short(std::string_view piece, std::vector<int32_t>& ids) const {
  int32_t parts[kShort], ranks[kShort], merged[kShort];
  size_t count = piece.size();
  for (size_t i = 0; i < count; ++i) parts[i] = byte_ids_[uint8_t(piece[i])];
  const auto look = [&](size_t i) {
    const Entry* entry = i + 1 < count ? find(parts[i], parts[i + 1]) : nullptr;
    ranks[i] = entry != nullptr ? entry->rank : kNever;
    merged[i] = entry != nullptr ? entry->into : -1;
  };
  for (size_t i = 0; i < count; ++i) look(i);
  while (count > 1) {
    const auto best = size_t(std::min_element(ranks, ranks + count - 1) - ranks);
    if (ranks[best] == kNever) break;
    parts[best] = merged[best];
    for (size_t i = best + 1; i + 1 < count; ++i) {
      parts[i] = parts[i + 1];
      ranks[i] = ranks[i + 1];
      merged[i] = merged[i + 1];
    }
    --count;
    look(best);
    if (best > 0) look(best - 1);
  }
  ids.insert(ids.end(), parts, parts + count);
}

// Long runs (of one character, of text without spaces): a linked list, and a queue of merges, from
// which entries that have become void are dropped when they come up.
void BytePairs::encode_long(std::string_view piece, std::vector<int32_t>& ids) const {
  struct Part {
    int32_t id, previous, next;
  };
  struct Candidate {
    int32_t rank, at, left, right, into;
    bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  const auto count = int32_t(piece.size());
  std::vector<Part> parts(piece.size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto look = [&](int32_t at) {
    if (at < 0 || parts[size_t(at)].next >= count) return;
    const int32_t left = parts[size_t(at)].id, right = parts[size_t(parts[size_t(at)].next)].id;
    if (const Entry* entry = find(left, right))
      queue.push({entry->rank, at, left, right, entry->into});
  };
  for (int32_t i = 0; i < count; ++i) {
    parts[size_t(i)] = {byte_ids_[uint8_t(piece[size_t(i)])], i - 1, i + 1};
  }
  for (int32_t i = 0; i < count; ++i) look(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Part& part = parts[size_t(best.at)];
    if (part.id != best.left || part.next >= count) continue;
    Part& right = parts[size_t(part.next)];
    if (right.id != best.right) continue;
    right.id = -1;  // gone
    part.id = best.into;
    part.next = right.next;
    if (part.next < count) parts[size_t(part.next)].previous = best.at;
    look(best.at);
    look(part.previous);
  }
  for (int32_t i = 0; i < count; i = parts[size_t(i)].next) ids.push_back(parts[size_t(i)].id);
}

}  // namespace fivefold::data
