#pragma once
// All parameters of a rank in one flat buffer, and their gradients in another, in the order of
// spec::parameters_of. Neighbours touch: q, k, v of a layer (or gate and up) are one matrix to a
// product, the optimizer sweeps everything in one pass, and a bucket of gradients is a range.

#include <map>
#include <string>
#include <vector>

#include "spec/model.hpp"
#include "tensor/tensor.hpp"

namespace fivefold {

struct Parameter {
  spec::ParameterSpec spec;
  int64_t offset = 0;  // elements from the start of the flat buffers
  int64_t count = 0;
};

class ParameterSet {
 public:
  // Values in `dtype`, gradients (when wanted) in accumulator_of(dtype); contents unspecified.
  ParameterSet(Memory& memory, std::vector<spec::ParameterSpec> specs, DType dtype,
               bool with_gradients);

  const std::vector<Parameter>& all() const { return parameters_; }
  const Parameter& at(const std::string& name) const;  // a name that is not there is our mistake
  const Parameter* find(const std::string& name) const;
  int64_t count() const { return count_; }
  DType dtype() const { return values_.dtype(); }

  View value(const Parameter& p) const;  // in its own shape
  View gradient(const Parameter& p) const;
  // Adjacent parameters of equal width as one [rows, columns] matrix: first to last inclusive.
  View value(const Parameter& first, const Parameter& last) const;
  View gradient(const Parameter& first, const Parameter& last) const;
  View values() const { return values_.view(); }        // [count]
  View gradients() const { return gradients_.view(); }  // [count]
  void zero_gradients() { gradients_.zero(); }

 private:
  std::vector<Parameter> parameters_;
  std::map<std::string, size_t> by_name_;
  int64_t count_ = 0;
  Tensor values_, gradients_;
};

// Initial weights: a pure function of (seed, name, index), so every layout starts with the same bits.
// `master` (f32 or f64, [count]) receives the unrounded values; `set` their rounding. Either may be
// the same buffer.
void initialize(const ParameterSet& set, uint64_t seed, View master);

// A hash of all values' bits, to compare ranks and runs.
uint64_t hash_of(ConstView flat);

}  // namespace fivefold
