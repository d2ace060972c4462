#pragma once
// What the implementations of attention share: operands as [batch, token, head, dim], and who sees
// whom.

#include <algorithm>
#include <type_traits>

#include "kernels/ops.hpp"

namespace fivefold::kernels {

// A [B,T,H,D] view without its sizes.
template <class T>
struct Heads {
  T* data = nullptr;
  int64_t batch = 0, token = 0, head = 0;  // strides
  T* at(int64_t b, int64_t t, int64_t h) const { return data + b * batch + t * token + h * head; }
};

// T may be const; an absent view gives null.
template <class T, class AnyView>
Heads<T> heads_of(const AnyView& view) {
  if (!view) return {};
  return {view.template as<std::remove_const_t<T>>(), view.stride[0], view.stride[1],
          view.stride[2]};
}

struct AttentionSizes {
  int64_t batches = 0, queries = 0, keys = 0, heads = 0, groups = 0, dim = 0;
  int64_t heads_per_group() const { return heads / groups; }
};
inline AttentionSizes attention_sizes(const ConstView& q, const ConstView& k) {
  return {q.size[0], q.size[1], k.size[1], q.size[2], k.size[2], q.size[3]};
}

struct KeyRange {
  int64_t from = 0, to = 0;  // empty when from >= to
};

// The keys that query `i` of sequence `b` sees.
inline KeyRange visible_keys(const AttentionShape& shape, const ConstView& document_start,
                             int64_t keys, int64_t b, int64_t i) {
  const int64_t position = i + shape.q_offset;
  KeyRange range{0, keys};
  if (shape.causal) range.to = std::min(keys, position + 1);
  if (shape.window > 0) range.from = std::max<int64_t>(range.from, position - shape.window + 1);
  if (document_start) {
    const int32_t start = document_start.as<int32_t>()[b * document_start.stride[0] + i];
    range.from = std::max<int64_t>(range.from, start);
  }
  return range.from < range.to ? range : KeyRange{};
}

}  // namespace fivefold::kernels
