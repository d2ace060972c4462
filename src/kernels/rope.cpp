#include "kernels/reference/rope.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/ops.hpp"

#define KERNEL_FILE "kernels/cpu/rope.inl"
#include "kernels/cpu/each_isa.inl"

namespace fivefold::kernels {

void rope(Context& ctx, View x, ConstView positions, ConstView table, Rotation rotation) {
  CHECK(x.rank == 3 && x.columns() % 2 == 0, "x is [N, H, D] with an even D");
  const int64_t rows = x.size[0], half = x.columns() / 2;
  CHECK(table.rank == 3 && table.size[1] == half && table.size[2] == 2 && table.contiguous(),
        "the table is [P, {}, 2]", half);
  const int32_t* position = elements<int32_t>(positions, rows, "positions");
  for (int64_t n = 0; n < rows; ++n) {
    CHECK(0 <= position[n] && position[n] < table.size[0],
          "positions[{}] = {} with {} in the table", n, position[n], table.size[0]);
  }
  const double* angles = table.as<double>();
  const double sign = rotation == Rotation::forward ? 1 : -1;
  with_type(x.dtype, [&]<class T>() {
    const reference::Heads<T> heads{x.as<T>(), x.size[1], x.size[2], x.stride[0], x.stride[1]};
    const auto kernel = KERNEL(ctx, T, rope);
    split(ctx, rows, row_grain(heads.heads * heads.width),
          [&](int64_t begin, int64_t end) { kernel(heads, position, angles, sign, begin, end); });
  });
}

}  // namespace fivefold::kernels
