// Run under mpirun by CTest: mpi_check cases | timeout | abandon | mismatch | stuck.
// Every rank judges what it sees; the first wrong thing makes it return 1.
// By hand: mpi_check bandwidth (under mpirun), or mpi_check threads <ranks> for the other
// transport.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "comm/mpi.hpp"
#include "comm/threads.hpp"
#include "comm/world_cases.hpp"

namespace fivefold::comm {
namespace {

using std::chrono::milliseconds;

// Not an expectation met: what was wanted, what came.
Status expect_error(const Status& status, Error::Code code, const std::string& part) {
  if (!status && status.error().code == code &&
      status.error().message.find(part) != std::string::npos) {
    return {};
  }
  return tl::unexpected(
      cases::mismatch(fmt::format("wanted an error {} with \"{}\", came \"{}\"", int(code), part,
                                  status ? std::string("success") : status.error().message)));
}

Status check_cases() {
  const auto world = TRY(mpi_world({milliseconds(60'000)}));
  if (mpi_local_ranks() != world->size()) return tl::unexpected(cases::mismatch("local ranks"));
  if (!under_mpi()) return tl::unexpected(cases::mismatch("under_mpi() is false"));
  TRY(cases::all_reduces(*world));
  TRY(cases::broadcasts(*world));
  TRY(cases::meters(*world));
  TRY(cases::duplicates(*world));
  // Several segments with a ragged end, and two groups from two threads of a rank.
  TRY(cases::all_reduce_is_the_serial_fold<float>(*world, Reduce::sum, 3'000'001));
  const auto twin = TRY(world->duplicate("dp"));
  Status other;
  std::thread thread([&] {
    for (int i = 0; i < 20 && other; ++i) {
      other = cases::all_reduce_is_the_serial_fold<bf16>(*twin, Reduce::sum, 30'000);
    }
  });
  Status mine;
  for (int i = 0; i < 20 && mine; ++i) {
    mine = cases::all_reduce_is_the_serial_fold<double>(*world, Reduce::sum, 20'000);
  }
  thread.join();
  TRY(mine);
  return other;
}

Status check_timeout() {
  const auto world = TRY(mpi_world({milliseconds(30'000)}));
  const auto impatient = TRY(mpi_world({milliseconds(300)}));
  const int last = world->size() - 1;
  TRY(impatient->barrier());
  if (world->rank() == last) {
    // The others time out, and say so before this rank's own deadline.
    return expect_error(world->barrier(), Error::Code::peer_lost, "no sign of rank 2 of 3");
  }
  std::vector<float> data(100);
  const Status status = impatient->all_reduce(View(data.data(), DType::f32, {100}), Reduce::sum);
  // The first to time out tells the others.
  if (!status && status.error().code == Error::Code::peer_lost) {
    return expect_error(status, Error::Code::peer_lost, "no sign of rank 2 of 3");
  }
  return expect_error(
      status, Error::Code::timeout,
      "world: all_reduce (sum) of 100 float32, call 2: no sign of rank 2 of 3 within "
      "0.3 s");
}

Status check_abandon() {
  const auto world = TRY(mpi_world({milliseconds(30'000)}));
  const auto group = TRY(world->duplicate("dp"));
  if (world->rank() == 1) {
    group->abandon("disk full");
    return expect_error(world->barrier(), Error::Code::peer_lost, "rank 1 gave up: disk full");
  }
  const Status status = world->rank() == 0 ? group->barrier() : world->barrier();
  TRY(expect_error(status, Error::Code::peer_lost, "rank 1 gave up: disk full"));
  return expect_error(group->barrier(), Error::Code::peer_lost, "rank 1 gave up: disk full");
}

Status check_mismatch() {
  const auto world = TRY(mpi_world({milliseconds(30'000)}));
  std::vector<float> data(1000);
  const int64_t count = world->rank() == 2 ? 999 : 1000;
  const Status status = world->all_reduce(View(data.data(), DType::f32, {count}), Reduce::sum);
  TRY(expect_error(
      status, Error::Code::invalid_input,
      "rank 0 call 1, all_reduce (sum) of 1000 float32; rank 2 call 1, all_reduce (sum) "
      "of 999 float32"));
  return expect_error(world->barrier(), Error::Code::peer_lost, "after the group had failed");
}

Status check_stuck() {
  const auto world = TRY(mpi_world({milliseconds(30'000)}));
  if (world->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(300));
  world->abandon("the other one sleeps");
  return {};
}

// Not a test: bus bandwidth as nccl-tests counts it, 2 (n-1)/n of the bytes over the median time.
Status measure(Communicator& world) {
  for (const int64_t bytes : {1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20}) {
    std::vector<float> data(size_t(bytes) / sizeof(float));
    const View view(data.data(), DType::f32, {int64_t(data.size())});
    std::vector<double> seconds;
    for (int i = 0; i < (bytes > 8 << 20 ? 12 : 200); ++i) {
      TRY(world.barrier());
      const auto start = std::chrono::steady_clock::now();
      TRY(world.all_reduce(view, Reduce::sum));
      double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      TRY(world.all_reduce(View(&took, DType::f64, {1}), Reduce::max));
      seconds.push_back(took);
    }
    std::sort(seconds.begin(), seconds.end());
    const double median = seconds[seconds.size() / 2];
    if (world.rank() == 0) {
      fmt::print("all_reduce {} ranks {:>9} B {:>10.1f} us {:>6.2f} GB/s\n", world.size(), bytes,
                 median * 1e6,
                 2.0 * (world.size() - 1) / world.size() * double(bytes) / median / 1e9);
    }
  }
  return {};
}

Status measure_mpi() { return measure(*TRY(mpi_world({milliseconds(60'000)}))); }

int run(const std::string& what, int ranks) {
  const std::map<std::string, std::function<Status()>> checks = {
      {"cases", check_cases},
      {"timeout", check_timeout},
      {"abandon", check_abandon},
      {"mismatch", check_mismatch},
      {"stuck", check_stuck},
      {"threads", [&] { return run_threads(ranks, {milliseconds(60'000)}, measure); }},
      {"bandwidth", measure_mpi}};
  const auto check = checks.find(what);
  const Status status =
      check == checks.end() ? invalid_input("no check \"{}\"", what) : check->second();
  if (status) return 0;
  fmt::print(stderr, "mpi_check {}: {}\n", what, status.error().message);
  return 1;
}

}  // namespace
}  // namespace fivefold::comm

int main(int argc, char** argv) {
  return fivefold::comm::run(argc > 1 ? argv[1] : "cases", argc > 2 ? std::atoi(argv[2]) : 2);
}
