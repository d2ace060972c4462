#pragma once
// What this machine can do at best, measured now: the denominators of MFU and of the benches.

#include "kernels/context.hpp"

namespace fivefold::kernels {

// Float32 fused multiply-adds from registers on `threads` threads, in FLOP/s: the median of short
// slices, about 80 ms in all. Units: 2 FLOP an FMA.
double measure_fma_peak(int threads, Isa isa);

// Bytes/s of a sweep shaped like AdamW over arrays far larger than the caches: reads w, g, m, v
// and writes w, m, v (28 bytes an element), with no arithmetic to speak of. The median of several
// sweeps.
double measure_sweep_bandwidth(int threads);

}  // namespace fivefold::kernels
