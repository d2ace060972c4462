#pragma once
// The innermost pieces of the packed matrix product, one set for each instruction set and dtype.
//
// An operand is packed into panels: `width` lanes (rows of A, columns of B) by `depth`, lane
// fastest, so that a micro-kernel reads both operands forwards through memory whatever their
// strides were. Panels stand `panel_stride` elements apart; packing may write, and leave rubbish
// in, the slack behind a panel.
//
// Source  Goto & van de Geijn, 2008; Van Zee & van de Geijn, 2015.

#include <cstddef>
#include <cstdint>

#include "kernels/context.hpp"
#include "tensor/dtype.hpp"

namespace fivefold::kernels {

// Elements behind each panel that packing may touch.
constexpr int64_t panel_slack = 16;

// Lane i at depth k is from[i * stride + k], or from[k * stride + i] if lanes are contiguous.
template <class Source>
struct PackArgs {
  const Source* from = nullptr;
  int64_t stride = 0;
  bool lanes_contiguous = false;
  int64_t lanes = 0, depth = 0;
  Accumulator<Source>* to = nullptr;
  int64_t panel_stride = 0;
};

// A block of memory that the next packing will read: fetched while this block is multiplied, or
// the multiplying units would idle at memory's speed.
struct Ahead {
  const std::byte* from = nullptr;
  int64_t stride = 0;  // bytes from row to row
  int64_t rows = 0, row_bytes = 0;
};

// c[rows, columns] = (c +) a b (+ bias), with a and b packed; columns past the end of a panel are
// computed and dropped.
template <class T>
struct BlockArgs {
  int64_t rows = 0, columns = 0, depth = 0;
  const T* a = nullptr;
  int64_t a_panel_stride = 0;
  const T* b = nullptr;
  int64_t b_panel_stride = 0;
  T* c = nullptr;
  int64_t c_stride = 0;
  bool add = false;
  const T* bias = nullptr;  // of the first column
  Ahead ahead = {};
};

template <class Source>
struct MatmulKernels {
  using T = Accumulator<Source>;
  int64_t rows = 0, columns = 0;  // of a micro-tile: the widths of A's and B's panels
  void (*pack_a)(const PackArgs<Source>&) = nullptr;
  void (*pack_b)(const PackArgs<Source>&) = nullptr;
  void (*multiply)(const BlockArgs<T>&) = nullptr;
};

// For the instruction set of `ctx`.
template <class Source>
MatmulKernels<Source> matmul_kernels(const Context& ctx);

}  // namespace fivefold::kernels
