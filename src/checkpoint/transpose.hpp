#pragma once
// Moves elements of 2, 4 or 8 bytes without reading them as numbers.

#include <cstdint>

namespace fivefold::checkpoint {

// to[c][r] = from[r][c] for a block of rows x columns; strides in elements.
void transpose(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows,
               int64_t columns, int64_t element_bytes);

}  // namespace fivefold::checkpoint
