#pragma once
// The arithmetic of a reduction and the shares of its work, the same for every transport: this is
// what makes threads and MPI agree to the bit.

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/communicator.hpp"

namespace fivefold::comm {

// Every output becomes ((s0 op s1) op s2) op …, element by element. bf16 is folded in float32 and
// rounded once; max and min give NaN where any operand is NaN; i64 sums wrap.
//
// Requires  at least one source; f32, f64, bf16 or i64; an output is one of the sources, or
//           overlaps none of them.
void fold(Reduce reduce, DType dtype, std::span<const std::byte* const> sources,
          std::span<std::byte* const> outputs, int64_t count);

bool can_fold(DType dtype);

// Elements [begin, end) that `rank` of `ranks` reduces for all: equal shares, the first `count %
// ranks` ranks take one more.
struct Slice {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};
Slice slice_of(int64_t count, int ranks, int rank);

// What an all-reduce costs this rank: its shares of the others in the reduce-scatter, then its own
// reduced share to each of them. Empty messages are not sent.
Meter cost_of_all_reduce(int64_t count, DType dtype, int ranks, int rank);

}  // namespace fivefold::comm
