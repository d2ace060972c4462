#pragma once
// How an op of ops.hpp becomes work: the dtype picks a template, the backend an implementation,
// and the pool splits the rows. A kernel is one function over a range of rows or elements that
// exists as reference::f<T> and, for f32 and bf16, once for each instruction set (each_isa.inl).

#include <algorithm>
#include <type_traits>

#include "kernels/context.hpp"
#include "kernels/cpu/isa.hpp"
#include "kernels/rows.hpp"

// The implementation of `function` that `ctx` asks for. float64 is there for proofs, not for
// speed: it takes the reference loops, in parallel.
#define KERNEL(ctx, T, function)                                        \
  ([&] {                                                                \
    if constexpr (!std::is_same_v<T, double>) {                         \
      if ((ctx).backend == Backend::cpu) return PICK(ctx, function<T>); \
    }                                                                   \
    return &::fivefold::kernels::reference::function<T>;                \
  }())

namespace fivefold::kernels {

// Calls f.operator()<T>() for the floating dtype.
template <class F>
void with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::bf16:
      return f.template operator()<bf16>();
    default:
      CHECK(false, "no kernel computes in {}", name_of(dtype));
  }
}

// body(begin, end) over [0, count): split over the pool, or in one piece for the reference.
template <class Body>
void split(Context& ctx, int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (ctx.backend == Backend::reference || ctx.pool.threads() == 1 || count <= grain) {
    body(int64_t{0}, count);
  } else {
    ctx.pool.parallel_for(count, grain, body);
  }
}

// Rows that make a piece of work worth handing to a thread.
inline int64_t row_grain(int64_t columns) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, columns));
}

// body(row, begin, end): the columns [begin, end) of a row. Views that are all contiguous are
// walked as one long row.
template <class Body, class... Views>
void split_elements(Context& ctx, const Body& body, const ConstView& first, const Views&... rest) {
  CHECK(((rest.count() == first.count() && rest.columns() == first.columns()) && ...),
        "operands of unequal shape");
  if (first.contiguous() && (rest.contiguous() && ...)) {
    split(ctx, first.count(), 8192, [&](int64_t begin, int64_t end) { body(0, begin, end); });
    return;
  }
  const int64_t columns = first.columns();
  split(ctx, first.rows(), row_grain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) body(n, int64_t{0}, columns);
  });
}

// The elements of a flat operand with `count` of them.
template <class T, class Pointer>
auto* elements(const BasicView<Pointer>& view, int64_t count, const char* name) {
  CHECK(view.count() == count && view.contiguous(), "{}: {} contiguous elements, not {}", name,
        count, view.count());
  return view.template as<T>();
}

}  // namespace fivefold::kernels
