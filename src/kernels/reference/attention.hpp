#pragma once

#include "kernels/ops.hpp"

namespace fivefold::kernels::reference {

// The contracts of ops.hpp; a row of scores at a time, one thread.
void attention_forward(Context&, const AttentionShape& shape, ConstView q, ConstView k, ConstView v,
                       ConstView document_start, const std::optional<AttentionDropout>& dropout,
                       View out, View lse);
void attention_backward(Context&, const AttentionShape& shape, ConstView dout, ConstView q,
                        ConstView k, ConstView v, ConstView out, ConstView lse,
                        ConstView document_start, const std::optional<AttentionDropout>& dropout,
                        View dq, View dk, View dv);

}  // namespace fivefold::kernels::reference
