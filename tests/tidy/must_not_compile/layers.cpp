// Compiled with what base sees. CASE 0 compiles; a module above base is out of its sight.
#include "base/result.hpp"
#if CASE == 1
#include "tensor/tensor.hpp"
#elif CASE == 2
#include "spec/run.hpp"
#endif

int main() {}
