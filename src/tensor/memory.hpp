#pragma once
// Where all numbers of a rank live. Every allocation belongs to a category; live and peak bytes are
// exact. Freed blocks are kept and handed out again, so a steady training step asks the system for
// nothing (page faults cost a third of a step on small machines; docs/adr/0003).

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>

namespace fivefold {

enum class Category : uint8_t {
  parameter,
  gradient,
  optimizer,
  activation,
  communication,
  workspace,
};
constexpr int category_count = 6;
constexpr std::string_view name_of(Category category) {
  constexpr std::string_view names[] = {"parameter",  "gradient",      "optimizer",
                                        "activation", "communication", "workspace"};
  return names[size_t(category)];
}

struct MemoryUse {
  std::array<int64_t, category_count> bytes{};  // indexed by Category
  int64_t of(Category category) const { return bytes[size_t(category)]; }
  int64_t total() const {
    int64_t sum = 0;
    for (const int64_t b : bytes) sum += b;
    return sum;
  }
};

// Thread-safe. Outlives every Tensor made from it.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  MemoryUse live() const;           // now
  MemoryUse peak() const;           // each category at its own highest
  MemoryUse at_total_peak() const;  // all categories at the moment when their sum was highest
  int64_t reserved() const;         // taken from the system, in use or kept
  void reset_peak();                // peaks restart from what is live

 private:
  friend class Tensor;
  // 64-byte aligned (2 MiB and huge pages from 1 MiB on), contents unspecified. Counts `bytes`
  // exactly. Exhausted memory ends the program with a message that names the category and the size.
  void* allocate(Category category, size_t bytes);
  void release(Category category, void* data, size_t bytes);

  mutable std::mutex mutex_;
  std::multimap<size_t, void*> kept_;  // by capacity
  std::map<void*, size_t> capacity_;   // of every block taken from the system
  MemoryUse live_, peak_, at_total_peak_;
  int64_t reserved_ = 0;
};

}  // namespace fivefold
