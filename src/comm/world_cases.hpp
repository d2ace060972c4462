#pragma once
// What every transport must do, as checks that any world can run: threads_test.cpp runs them on
// threads, tests/mpi on processes.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "comm/communicator.hpp"

namespace fivefold::comm::cases {

constexpr int64_t counts[] = {0, 1, 5, 1000, 65537};
constexpr DType dtypes[] = {DType::f32, DType::f64, DType::bf16, DType::i64};
constexpr Reduce reductions[] = {Reduce::sum, Reduce::max, Reduce::min};

inline Error mismatch(std::string message) { return {Error::Code::not_finite, std::move(message)}; }

// Element i of `rank`: a function of both, with magnitudes that make the order of a sum visible.
template <class T>
T element(int rank, int64_t i) {
  const Random random(7, uint64_t(rank));
  const double x =
      (random.uniform(uint64_t(i)) - 0.5) * double(1 << (random.bits(uint64_t(i)) % 20));
  if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(float(x));
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return int64_t(random.bits(uint64_t(i)));
  } else {
    return T(x);
  }
}

// The contract, word by word: ((r0 + r1) + r2) + …, bf16 in float32.
template <class T>
T expected(Reduce reduce, int ranks, int64_t i) {
  const auto wide = [](T x) {
    if constexpr (std::is_same_v<T, bf16>) {
      return to_float(x);
    } else {
      return x;
    }
  };
  auto result = wide(element<T>(0, i));
  for (int rank = 1; rank < ranks; ++rank) {
    const auto next = wide(element<T>(rank, i));
    if (reduce == Reduce::max) {
      result = std::max(result, next);
    } else if (reduce == Reduce::min) {
      result = std::min(result, next);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      result = int64_t(uint64_t(result) + uint64_t(next));
    } else {
      result = result + next;
    }
  }
  if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(result);
  } else {
    return result;
  }
}

template <class T>
Status all_reduce_is_the_serial_fold(Communicator& world, Reduce reduce, int64_t count) {
  std::vector<T> data(static_cast<size_t>(count)), want(data.size());
  for (int64_t i = 0; i < count; ++i) {
    data[size_t(i)] = element<T>(world.rank(), i);
    want[size_t(i)] = expected<T>(reduce, world.size(), i);
  }
  TRY(world.all_reduce(View(data.data(), DTypeOf<T>::value, {count}), reduce));
  for (size_t i = 0; i < data.size(); ++i) {
    if (std::memcmp(&data[i], &want[i], sizeof(T)) != 0) {
      return tl::unexpected(mismatch(
          fmt::format("all_reduce {} of {} {}: element {} differs on rank {} of {}", int(reduce),
                      count, name_of(DTypeOf<T>::value), i, world.rank(), world.size())));
    }
  }
  return {};
}

// All counts, dtypes and reductions, one after the other on the same group.
inline Status all_reduces(Communicator& world) {
  for (const int64_t count : counts) {
    for (const Reduce reduce : reductions) {
      TRY(all_reduce_is_the_serial_fold<float>(world, reduce, count));
      TRY(all_reduce_is_the_serial_fold<double>(world, reduce, count));
      TRY(all_reduce_is_the_serial_fold<bf16>(world, reduce, count));
      TRY(all_reduce_is_the_serial_fold<int64_t>(world, reduce, count));
    }
  }
  return {};
}

// From every root, every count.
inline Status broadcasts(Communicator& world) {
  for (const int64_t count : counts) {
    for (int root = 0; root < world.size(); ++root) {
      std::vector<double> data(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) data[size_t(i)] = element<double>(world.rank(), i);
      TRY(world.broadcast(View(data.data(), DType::f64, {count}), root));
      for (int64_t i = 0; i < count; ++i) {
        if (data[size_t(i)] != element<double>(root, i)) {
          return tl::unexpected(
              mismatch(fmt::format("broadcast of {} from {}: element {} differs on rank {}", count,
                                   root, i, world.rank())));
        }
      }
    }
  }
  return {};
}

// Bytes as the contract says: 2 (n-1) times the data over all ranks for an all-reduce, (n-1) times
// from the root of a broadcast, none for a barrier.
inline Status meters(Communicator& world) {
  const int64_t others = world.size() - 1;
  std::vector<float> data(1003);
  const View view(data.data(), DType::f32, {1003});
  const auto sent_by_all = [&](auto&& call) -> Result<int64_t> {
    const int64_t before = world.meter().bytes_sent;
    TRY(call());
    int64_t sent = world.meter().bytes_sent - before;
    TRY(world.all_reduce(View(&sent, DType::i64, {1}), Reduce::sum));
    return sent;
  };
  const int64_t reduced = TRY(sent_by_all([&] { return world.all_reduce(view, Reduce::sum); }));
  const int64_t broadcast =
      TRY(sent_by_all([&] { return world.broadcast(view, others > 0 ? 1 : 0); }));
  const int64_t barrier = TRY(sent_by_all([&] { return world.barrier(); }));
  if (reduced == 2 * others * 4012 && broadcast == others * 4012 && barrier == 0) return {};
  return tl::unexpected(mismatch(
      fmt::format("all_reduce {}, broadcast {}, barrier {} bytes", reduced, broadcast, barrier)));
}

// A duplicate has the same ranks and a life of its own: calls on it and on the original may
// alternate in any order that each group agrees on.
inline Status duplicates(Communicator& world) {
  const auto twin = TRY(world.duplicate("dp"));
  const auto grandchild = TRY(twin->duplicate("inner"));
  if (twin->rank() != world.rank() || twin->size() != world.size() || twin->axis() != "dp" ||
      grandchild->axis() != "inner") {
    return tl::unexpected(mismatch("a duplicate of another shape"));
  }
  for (int round = 0; round < 20; ++round) {
    TRY(all_reduce_is_the_serial_fold<float>(*twin, Reduce::sum, 700 + round));
    TRY(all_reduce_is_the_serial_fold<double>(world, Reduce::sum, 300));
    TRY(grandchild->barrier());
  }
  return {};
}

}  // namespace fivefold::comm::cases
