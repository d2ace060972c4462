#include "kernels/matmul.hpp"

namespace fivefold::kernels::detail {
bool matmul_few_rows(Context&, const MatmulProblem&) { return false; }
}  // namespace fivefold::kernels::detail
