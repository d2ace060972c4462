#pragma once

#include "kernels/ops.hpp"

namespace fivefold::kernels::reference {

// As in ops.hpp; shapes were checked there.
void linear_forward(ConstView x, ConstView w, ConstView bias, View y, Write write);
void linear_backward_input(ConstView dy, ConstView w, View dx, Write write);
void linear_backward_weight(ConstView dy, ConstView x, View dw, View dbias);

}  // namespace fivefold::kernels::reference
