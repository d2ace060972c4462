#include "tensor/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/check.hpp"
#include "base/quantity.hpp"

namespace fivefold {
namespace {

constexpr size_t huge_page = size_t{2} << 20;
constexpr size_t large = size_t{1} << 20;

size_t capacity_for(size_t bytes) {
  const size_t unit = bytes >= large ? huge_page : 64;
  return std::max<size_t>(unit, (bytes + unit - 1) / unit * unit);
}

// The world's fault, but found where no error can be returned: the message, and exit status 1.
[[noreturn]] void out_of_memory(Category category, size_t bytes, int64_t in_use) {
  const std::string text = fmt::format(
      "error: out of memory: {} more for {} with {} in use; use a smaller model or micro batch, or "
      "activation_checkpoint.mode = \"full\"\n",
      to_string(Bytes{double(bytes)}), name_of(category), to_string(Bytes{double(in_use)}));
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  std::_Exit(1);
}

}  // namespace

Memory::~Memory() {
  CHECK(live_.total() == 0, "{} bytes still in use", live_.total());
  for (const auto& [data, capacity] : capacity_) std::free(data);
}

void* Memory::allocate(Category category, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const size_t capacity = capacity_for(bytes);
  void* data = nullptr;
  // A kept block serves when at most an eighth of it would lie idle.
  if (const auto it = kept_.lower_bound(capacity);
      it != kept_.end() && it->first - capacity <= capacity / 8) {
    data = it->second;
    kept_.erase(it);
  } else {
    data = std::aligned_alloc(capacity >= huge_page ? huge_page : 64, capacity);
    if (data == nullptr) out_of_memory(category, bytes, live_.total());
    if (capacity >= huge_page) ::madvise(data, capacity, MADV_HUGEPAGE);
    capacity_[data] = capacity;
    reserved_ += int64_t(capacity);
  }
  int64_t& live = live_.bytes[size_t(category)];
  live += int64_t(bytes);
  int64_t& peak = peak_.bytes[size_t(category)];
  peak = std::max(peak, live);
  if (live_.total() > at_total_peak_.total()) at_total_peak_ = live_;
  return data;
}

void Memory::release(Category category, void* data, size_t bytes) {
  const std::scoped_lock lock(mutex_);
  live_.bytes[size_t(category)] -= int64_t(bytes);
  kept_.emplace(capacity_.at(data), data);
}

MemoryUse Memory::live() const {
  const std::scoped_lock lock(mutex_);
  return live_;
}

MemoryUse Memory::peak() const {
  const std::scoped_lock lock(mutex_);
  return peak_;
}

MemoryUse Memory::at_total_peak() const {
  const std::scoped_lock lock(mutex_);
  return at_total_peak_;
}

int64_t Memory::reserved() const {
  const std::scoped_lock lock(mutex_);
  return reserved_;
}

void Memory::reset_peak() {
  const std::scoped_lock lock(mutex_);
  peak_ = at_total_peak_ = live_;
}

}  // namespace fivefold
