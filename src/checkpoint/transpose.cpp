#include "checkpoint/transpose.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace fivefold::checkpoint {
namespace {

template <class T>
void transpose_as(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows,
                  int64_t columns) {
  constexpr int64_t tile = 32;  // both sides' lines of a tile stay in the first cache
  const auto* source = static_cast<const T*>(from);
  auto* target = static_cast<T*>(to);
  for (int64_t r0 = 0; r0 < rows; r0 += tile) {
    for (int64_t c0 = 0; c0 < columns; c0 += tile) {
      for (int64_t r = r0; r < std::min(rows, r0 + tile); ++r) {
        for (int64_t c = c0; c < std::min(columns, c0 + tile); ++c) {
          target[c * to_stride + r] = source[r * from_stride + c];
        }
      }
    }
  }
}

}  // namespace

void transpose(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows,
               int64_t columns, int64_t element_bytes) {
  switch (element_bytes) {
    case 2:
      return transpose_as<uint16_t>(from, from_stride, to, to_stride, rows, columns);
    case 4:
      return transpose_as<uint32_t>(from, from_stride, to, to_stride, rows, columns);
    case 8:
      return transpose_as<uint64_t>(from, from_stride, to, to_stride, rows, columns);
    default:
      CHECK(false, "elements of {} bytes", element_bytes);
  }
}

}  // namespace fivefold::checkpoint
