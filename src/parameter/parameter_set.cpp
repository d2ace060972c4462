#include "parameter/parameter_set.hpp"

#include <cstring>

#include "base/random.hpp"

namespace fivefold {
namespace {

Shape shape_of(const spec::ParameterSpec& spec) {
  switch (spec.shape.size()) {
    case 1: return {spec.shape[0]};
    case 2: return {spec.shape[0], spec.shape[1]};
    case 3: return {spec.shape[0], spec.shape[1], spec.shape[2]};
    default: CHECK(false, "{} has {} dims", spec.name, spec.shape.size()); return {};
  }
}

View part(const Tensor& flat, int64_t offset, const Shape& shape) {
  return View(static_cast<std::byte*>(flat.view().data) + offset * int64_t(size_of(flat.dtype())),
              flat.dtype(), shape);
}

View joined(const Tensor& flat, const Parameter& first, const Parameter& last) {
  const int64_t columns = first.spec.shape.size() == 1 ? 1 : first.spec.shape.back();
  const int64_t count = last.offset + last.count - first.offset;
  CHECK(count > 0 && count % columns == 0, "{} to {} is not one matrix", first.spec.name,
        last.spec.name);
  if (first.spec.shape.size() == 1) return part(flat, first.offset, {count});
  return part(flat, first.offset, {count / columns, columns});
}

template <class T>
void initialize_as(const Parameter& p, uint64_t seed, T* values) {
  switch (p.spec.init) {
    case spec::Init::zeros: std::fill_n(values, p.count, T{0}); return;
    case spec::Init::ones: std::fill_n(values, p.count, T{1}); return;
    case spec::Init::normal: break;
  }
  const Random random(seed, stream_of(p.spec.name));
  for (int64_t i = 0; i < p.count; ++i) {
    values[i] = T(p.spec.init_std * random.normal(uint64_t(i)));
  }
}

template <class T>
void round_into(std::span<const T> from, View to) {
  if (to.data == static_cast<const void*>(from.data())) return;
  switch (to.dtype) {
    case DType::f32:
      for (size_t i = 0; i < from.size(); ++i) to.as<float>()[i] = float(from[i]);
      return;
    case DType::f64:
      for (size_t i = 0; i < from.size(); ++i) to.as<double>()[i] = double(from[i]);
      return;
    case DType::bf16:
      for (size_t i = 0; i < from.size(); ++i) to.as<bf16>()[i] = to_bf16(float(from[i]));
      return;
    default: CHECK(false, "parameters of {}", name_of(to.dtype));
  }
}

}  // namespace

ParameterSet::ParameterSet(Memory& memory, std::vector<spec::ParameterSpec> specs, DType dtype,
                           bool with_gradients) {
  for (spec::ParameterSpec& spec : specs) {
    const int64_t count = spec.count();
    by_name_[spec.name] = parameters_.size();
    parameters_.push_back({std::move(spec), count_, count});
    count_ += count;
  }
  CHECK(by_name_.size() == parameters_.size(), "two parameters share a name");
  values_ = Tensor(memory, Category::parameter, dtype, {count_});
  if (with_gradients) {
    gradients_ = Tensor(memory, Category::gradient, accumulator_of(dtype), {count_});
  }
}

const Parameter* ParameterSet::find(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &parameters_[it->second];
}

const Parameter& ParameterSet::at(const std::string& name) const {
  const Parameter* found = find(name);
  CHECK(found != nullptr, "no parameter {}", name);
  return *found;
}

View ParameterSet::value(const Parameter& p) const { return part(values_, p.offset, shape_of(p.spec)); }

View ParameterSet::gradient(const Parameter& p) const {
  return part(gradients_, p.offset, shape_of(p.spec));
}

View ParameterSet::value(const Parameter& first, const Parameter& last) const {
  return joined(values_, first, last);
}

View ParameterSet::gradient(const Parameter& first, const Parameter& last) const {
  return joined(gradients_, first, last);
}

void initialize(const ParameterSet& set, uint64_t seed, View master) {
  CHECK(master.count() == set.count(), "master weights of another size");
  for (const Parameter& p : set.all()) {
    if (master.dtype == DType::f64) {
      initialize_as(p, seed, master.as<double>() + p.offset);
    } else {
      initialize_as(p, seed, master.as<float>() + p.offset);
    }
  }
  if (master.dtype == DType::f64) {
    round_into<double>(std::as_const(master).flat<double>(), set.values());
  } else {
    round_into<float>(std::as_const(master).flat<float>(), set.values());
  }
}

uint64_t hash_of(ConstView flat) {
  CHECK(flat.contiguous(), "hash of a strided view");
  const auto* bytes = static_cast<const unsigned char*>(flat.data);
  const size_t size = size_t(flat.count()) * size_of(flat.dtype);
  uint64_t hash = 0xcbf29ce484222325;
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + i, 8);
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  for (; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

}  // namespace fivefold
