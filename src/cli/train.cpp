#include <atomic>
#include <csignal>
#include <memory>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "comm/mpi.hpp"
#include "comm/threads.hpp"
#include "spec/run.hpp"
#include "train/trainer.hpp"

namespace fivefold::cli {
namespace {

std::atomic<bool> stop_requested = false;

// The first signal asks the run to save and end; the second ends it at once.
extern "C" void on_signal(int number) {
  stop_requested = true;
  std::signal(number, SIG_DFL);
}

struct TrainOptions {
  std::string run_file;
  int ranks = 0;
  bool print_config = false;
};

int threads_of(const spec::RunSpec& run, int local_ranks) {
  return run.training.threads > 0 ? int(run.training.threads) : default_threads(local_ranks);
}

Status train_on_mpi(const spec::RunSpec& run, const comm::Options& options) {
  const std::unique_ptr<comm::Communicator> world = TRY(comm::mpi_world(options));
  Console console(run.metrics.log_freq);
  const Status status =
      train::train(run, {.world = *world,
                         .reporter = world->rank() == 0 ? &console : nullptr,
                         .stop = stop_requested,
                         .threads = threads_of(run, comm::mpi_local_ranks()),
                         .transport = "MPI"});
  if (!status) world->abandon(status.error().message);
  return status;
}

Status train_command(const TrainOptions& options, const std::vector<std::string>& overrides) {
  const spec::RunSpec run = TRY(spec::load_run(options.run_file, overrides));
  if (options.print_config) {
    fmt::print("{}", spec::to_toml(run));
    return {};
  }
  TRY(spec::check_trainable(run));
  const comm::Options comm_options{.timeout = std::chrono::seconds(run.comm.init_timeout_seconds)};
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  if (comm::under_mpi()) {
    if (options.ranks > 0) {
      return invalid_input("--ranks is for threads of one process, and this is an MPI launch: leave "
                           "it out, mpirun -n gives the number of ranks");
    }
    return train_on_mpi(run, comm_options);
  }
  const int ranks = options.ranks > 0 ? options.ranks
                    : run.parallelism.data_parallel_replicate_degree > 0
                        ? int(run.parallelism.data_parallel_replicate_degree)
                        : 1;
  Console console(run.metrics.log_freq);
  return comm::run_threads(ranks, comm_options, [&](comm::Communicator& world) {
    return train::train(run, {.world = world,
                              .reporter = world.rank() == 0 ? &console : nullptr,
                              .stop = stop_requested,
                              .threads = threads_of(run, ranks),
                              .transport = "threads"});
  });
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("train", "Train a model as a run file says");
  const auto options = std::make_shared<TrainOptions>();
  command->add_option("RUN", options->run_file, "Run file (TOML); docs/run_file.md lists its keys")
      ->required();
  command
      ->add_option("--ranks", options->ranks,
                   "Ranks as threads of this process; under mpirun or srun the processes are the ranks")
      ->check(CLI::Range(1, 256));
  command->add_flag("--print-config", options->print_config,
                    "Print the effective run file and stop");
  command->allow_extras();
  command->footer("Any key of the run file is an option: --training.steps=100 --optimizer.lr=1e-3");
  command->callback([command, options, &action] {
    action = [options, overrides = overrides_of(*command)] {
      return train_command(*options, overrides);
    };
  });
}

}  // namespace fivefold::cli
