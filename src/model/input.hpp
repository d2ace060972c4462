#pragma once
// One microbatch as the model sees it: B sequences of T tokens, N = B T rows.

#include <cstdint>

#include "tensor/view.hpp"

namespace fivefold::model {

struct Input {
  int64_t sequences = 0, seq_len = 0;
  ConstView tokens;          // i32[N]
  ConstView targets;         // i32[N], -1 where no loss is taken; empty when only logits are wanted
  ConstView positions;       // i32[N]
  ConstView document_start;  // i32[B,T]; empty: one document a row
  ConstView token_index;     // i64[N], in the whole data stream; needed for dropout only
  bool training = false;     // dropout acts

  int64_t rows() const { return sequences * seq_len; }
};

}  // namespace fivefold::model
