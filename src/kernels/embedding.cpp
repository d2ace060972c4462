#include "kernels/reference/embedding.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/ops.hpp"

#define KERNEL_FILE "kernels/cpu/embedding.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {
namespace {

const int32_t* checked_ids(const ConstView& ids, int64_t rows, int64_t classes) {
  const int32_t* id = elements<int32_t>(ids, rows, "ids");
  for (int64_t n = 0; n < rows; ++n) {
    CHECK(0 <= id[n] && id[n] < classes, "ids[{}] = {} with a vocabulary of {}", n, id[n], classes);
  }
  return id;
}

}  // namespace

void embedding_forward(Context& ctx, ConstView ids, ConstView table, View y, Write write) {
  CHECK(y.columns() == table.columns(), "y has {} columns, the table {}", y.columns(),
        table.columns());
  const int32_t* id = checked_ids(ids, y.rows(), table.rows());
  with_type(table.dtype, [&]<class T>() {
    const auto tables = rows_of<const T>(table);
    const auto ys = rows_of<T>(y);
    const auto kernel = KERNEL(ctx, T, embedding_forward);
    split(ctx, y.rows(), row_grain(y.columns()), [&](int64_t begin, int64_t end) {
      kernel(id, tables, ys, write == Write::accumulate, begin, end);
    });
  });
}

void embedding_backward(Context& ctx, ConstView ids, ConstView dy, View dtable) {
  CHECK(dy.columns() == dtable.columns(), "dy has {} columns, the table {}", dy.columns(),
        dtable.columns());
  const int32_t* id = checked_ids(ids, dy.rows(), dtable.rows());
  with_type(dy.dtype, [&]<class T>() {
    const auto dys = rows_of<const T>(dy);
    const auto dtables = rows_of<Accumulator<T>>(dtable);
    const auto kernel = KERNEL(ctx, T, embedding_backward);
    // Threads own columns, so that rows with the same id are added in the order of n.
    const int64_t threads = ctx.pool.threads();
    const int64_t grain = std::max<int64_t>(64, (dy.columns() / threads + 15) / 16 * 16);
    split(ctx, dy.columns(), grain,
          [&](int64_t begin, int64_t end) { kernel(id, dys, dtables, begin, end); });
  });
}

}  // namespace fivefold::kernels
