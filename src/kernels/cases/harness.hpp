#pragma once
// The judge of the cases: what a fast kernel and a gradient must satisfy, and how fast they are.

#include "kernels/cases/case.hpp"

namespace fivefold::kernels::cases {

// The cases of every op family.
std::vector<Case> all_cases();

// Large enough to be worth a row of the timing table.
bool is_timed(const Case& c);

// Runs forward and backward on Backend::cpu for every instruction set of this machine (the best one
// for timed cases), in f32, bf16 and f64, with 1, 2 and 3 threads, twice each, against
// Backend::reference. Returns one line for each fault, empty when there is none:
//   - the relative error of a tensor, ||cpu - reference|| / ||reference||, is above
//     f32 1e-5, f64 1e-12; bf16 2^-8 for tensors stored in bf16: either side rounds once, so each
//     is within half a unit in the last place, 2^-9, of nearly the same number; accumulators of a
//     bf16 run are f32 and judged so;
//   - an element is NaN, or was not written (outputs start as NaN);
//   - two runs differ in a bit, or two thread counts do where the case promises that they do not;
//   - an input was changed.
std::vector<std::string> compare_backends(const Case& c);

// For cases small enough (Case::gradient): the reference's gradient in float64 against finite
// differences of L = sum(dout * out), fourth order, central, step 1e-3 (times an input's scale if
// that is below 1): three random directions over each `normal` input, and every element of inputs
// up to 64 elements. The error is relative to max(||g||, 1e-3 ||all gradients||) and must stay
// below 1e-7. Returns one line for each fault.
std::vector<std::string> check_gradients(const Case& c);

struct Timing {
  double forward = 0, backward = 0;  // seconds, medians
};
// In float32. Takes about `seconds`; every part runs at least twice and the first is not counted.
Timing time_case(const Case& c, Context& ctx, double seconds);

}  // namespace fivefold::kernels::cases
