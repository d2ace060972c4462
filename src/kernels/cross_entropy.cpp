#include "kernels/reference/cross_entropy.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/ops.hpp"

#define KERNEL_FILE "kernels/cpu/cross_entropy.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {
namespace {

const int32_t* checked_targets(const ConstView& targets, int64_t rows, int64_t classes) {
  const int32_t* target = elements<int32_t>(targets, rows, "targets");
  for (int64_t n = 0; n < rows; ++n) {
    CHECK(-1 <= target[n] && target[n] < classes, "target {} of row {} of {} classes", target[n], n,
          classes);
  }
  return target;
}

}  // namespace

void cross_entropy_forward(Context& ctx, ConstView logits, ConstView targets, View losses,
                           View lse) {
  const int64_t n = logits.rows();
  if (n == 0) return;
  const int32_t* target = checked_targets(targets, n, logits.columns());
  with_type(logits.dtype, [&]<class T>() {
    const auto rows = rows_of<const T>(logits);
    auto* loss = elements<Accumulator<T>>(losses, n, "losses");
    auto* log_sum = elements<Accumulator<T>>(lse, n, "lse");
    const auto kernel = KERNEL(ctx, T, cross_entropy_forward);
    split(ctx, n, row_grain(logits.columns()),
          [&](int64_t begin, int64_t end) { kernel(rows, target, loss, log_sum, begin, end); });
  });
}

void cross_entropy_backward(Context& ctx, View logits, ConstView targets, ConstView lse,
                            double scale) {
  const int64_t n = logits.rows();
  if (n == 0) return;
  const int32_t* target = checked_targets(targets, n, logits.columns());
  with_type(logits.dtype, [&]<class T>() {
    const auto rows = rows_of<T>(logits);
    const auto* log_sum = elements<Accumulator<T>>(lse, n, "lse");
    const auto kernel = KERNEL(ctx, T, cross_entropy_backward);
    split(ctx, n, row_grain(logits.columns()),
          [&](int64_t begin, int64_t end) { kernel(rows, target, log_sum, scale, begin, end); });
  });
}

}  // namespace fivefold::kernels
