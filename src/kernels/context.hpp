#pragma once
// What every op is given besides its operands: whose threads to use, where scratch memory comes
// from, and which implementation answers.

#include <cstdint>
#include <string_view>

#include "kernels/thread_pool.hpp"
#include "tensor/memory.hpp"

namespace fivefold::kernels {

// reference: short, obvious, one thread; every other one is judged by it.
// cpu: fast; the widest instruction set of `Isa` that the machine has.
enum class Backend : uint8_t { reference, cpu };

enum class Isa : uint8_t { portable, avx2, avx512 };
std::string_view name_of(Isa isa);
Isa best_isa();  // of this machine: avx512 needs F, BW, DQ, VL; avx2 needs FMA and F16C

// Which library multiplies matrices. `automatic` is the packed kernels where the instruction set
// has them for the dtypes at hand, OpenBLAS elsewhere.
enum class MatmulEngine : uint8_t { automatic, packed, openblas };

struct Context {
  ThreadPool& pool;  // this rank's threads
  Memory& memory;    // this rank's memory; scratch is Category::workspace
  Backend backend = Backend::cpu;
  Isa isa = best_isa();
  MatmulEngine matmul = MatmulEngine::automatic;
};

}  // namespace fivefold::kernels
