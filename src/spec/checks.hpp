#pragma once
// What must hold between values, after each has been read.

#include <initializer_list>
#include <string>

#include "spec/givens.hpp"

namespace fivefold::spec {

class Checker {
 public:
  Checker(const RunSpec& run, const GivenKeys& given, Report& report)
      : run_(run), given_(given), report_(report) {}

  const RunSpec& run() const { return run_; }
  // Every value of `keys` within its range or choices, wherever it came from.
  void ranges(const std::vector<Key>& keys);
  // Blames the first key. Says nothing when one of the keys is at fault already: the condition then
  // speaks of a value that the user did not mean.
  void require(bool holds, std::initializer_list<const char*> keys, const std::string& reason);
  bool faulted(std::initializer_list<const char*> keys) const;
  // The run file or the command line gave this key, not a preset or a default.
  bool given_by_user(const char* key) const;

 private:
  const RunSpec& run_;
  const GivenKeys& given_;
  Report& report_;
};

// Fills in what follows from other values: head_dim, num_kv_heads.
void derive(ModelSpec& model);
// GPT-2's norm, positions, MLP and biases, where architecture says so; a file may then change them.
ModelSpec defaults_of(Architecture architecture);

void check_model(Checker& check);
void check_run(Checker& check);

// "1, 2, 4 or 8"
std::string divisors(int64_t n);

// Keys or values of the model that `name` stands for; faults go to `report`, those of the name
// itself at the place where it was given.
struct ModelSource {
  bool found = false;  // the name stands for something; what it holds may still be at fault
  GivenKeys keys;      // of a preset file
  ModelSpec model;     // to start from: defaults, or a config.json's values
};
ModelSource open_model(const std::string& name, const Given& given, Report& report);

// The model that `keys` are laid over: source.model, or its architecture's defaults when the keys
// name the architecture.
ModelSpec start_model(const ModelSource& source, const GivenKeys& keys);

// A config.json's values, nothing derived or checked yet.
ModelSpec read_huggingface_config(std::string_view text, const std::string& file, Report& report);

}  // namespace fivefold::spec
