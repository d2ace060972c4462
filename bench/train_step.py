#!/usr/bin/env python3
"""Training steps of Fivefold beside PyTorch's, in turn, in one table.

    bench/train_step.py                     # builds, then all cases, 3 rounds, 2 threads (an hour)
    bench/train_step.py --case gpt2_b4_t64 --rounds 5

Each round runs one process of each program, in an order that turns with the round, so that the
machine's drift meets all of them; the table shows medians over the rounds, and the median, lowest
and highest of the ratios within a round. Every process makes warm-up steps that are not counted.

The peer is Debian's PyTorch (apt-get install python3-torch libopenblas0-openmp) at its tuned
settings: OpenBLAS for OpenMP, so that one thread pool has the cores, and a malloc that keeps its
pages, on huge pages. Where a variable such as OPENBLAS_CORETYPE forces its BLAS to a core type, it
runs a second time without it, because a forced type can slow it; the fairer ratio is the lower one.
Where there is no PyTorch its rows are left out, with a word.
"""

import argparse
import glob
import json
import os
import resource
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = {  # name: model, micro batch, sequence length, counted steps
    "gpt2_b4_t64": ("gpt2_124m", 4, 64, 6),
    "gpt2_b4_t256": ("gpt2_124m", 4, 256, 4),
    "gpt2_b1_t1024": ("gpt2_124m", 1, 1024, 4),
    "llama_v32000": ("llama_288x6_v32000", 8, 256, 6),
    "llama_v4096": ("llama_288x6_v4096", 8, 256, 8),
}
FORCED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def machine_jiffies():
    with open("/proc/stat") as file:
        fields = list(map(int, file.readline().split()[1:9]))
    return sum(fields) - fields[3] - fields[4]  # all but idle and waiting


def run(command, environment):
    """The JSON line of one process, with the share of the machine that others took meanwhile."""
    own_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy_before, start = machine_jiffies(), time.time()
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
    wall = time.time() - start
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        sys.exit(f"error: {' '.join(command)} ended with {process.returncode}\n"
                 f"{process.stderr[-2000:]}")
    result = json.loads(process.stdout.strip().splitlines()[-1])
    seconds = own.ru_utime + own.ru_stime - own_before.ru_utime - own_before.ru_stime
    busy = (machine_jiffies() - busy_before) / os.sysconf("SC_CLK_TCK")
    result["others"] = max(0.0, busy - seconds) / wall / os.cpu_count()
    return result


def tuned(environment, threads, without=()):
    kept = {k: v for k, v in environment.items() if k not in without}
    blas = glob.glob("/usr/lib/*/openblas-openmp")
    if not blas:
        return None
    return dict(kept, LD_LIBRARY_PATH=blas[0], GLIBC_TUNABLES="glibc.malloc.hugetlb=1",
                MALLOC_MMAP_THRESHOLD_="8589934592", MALLOC_TRIM_THRESHOLD_="34359738368",
                OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))


def peers_of(a):
    """Name to (command, environment) of the peers that can run here; says which cannot, and why."""
    if a.no_peer:
        return {}
    command = [a.peer_python, f"{ROOT}/bench/peers/torch_step.py"]
    try:
        probe = subprocess.run([a.peer_python, "-c", "import torch"], capture_output=True)
        there = probe.returncode == 0
    except OSError:
        there = False
    if not there:
        print(f"PyTorch's rows are left out: {a.peer_python} has none "
              "(apt-get install python3-torch)\n")
        return {}
    environment = tuned(os.environ, a.threads)
    if environment is None:
        print("PyTorch's rows are left out: untuned it is no match "
              "(apt-get install libopenblas0-openmp)\n")
        return {}
    peers = {"PyTorch": (command, environment)}
    forced = [v for v in FORCED if v in os.environ]
    if forced:
        del peers["PyTorch"]
    if forced and a.core_type != "unset":
        name = "PyTorch, " + " ".join(f"{v}={os.environ[v]}" for v in forced)
        peers = {name: (command, environment)}
    if forced and a.core_type != "environment":
        peers["PyTorch, core type unset"] = (command, tuned(os.environ, a.threads, FORCED))
    return peers


def build(a):
    if a.binary:
        return a.binary
    for command in (["cmake", "--preset", "release"],
                    ["cmake", "--build", "--preset", "release", "--target", "train_step"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"error: {' '.join(command)} failed\n{(done.stdout + done.stderr)[-3000:]}")
    return f"{ROOT}/build/release/bench/train_step"


def rounds_of(programs, case, a):
    """All results of one case: program to its list over the rounds."""
    model, batch, seq_len, steps = CASES[case]
    arguments = ["--model", model, "--micro-batch", str(batch), "--seq-len", str(seq_len),
                 "--threads", str(a.threads), "--steps", str(a.steps or steps)]
    results = {name: [] for name in programs}
    names = list(programs)
    for turn in range(a.rounds):
        for i in range(len(names)):
            name = names[(i + turn) % len(names)]
            command, environment = programs[name]
            results[name].append(run(command + arguments, environment))
    return results


def print_case(case, results, a):
    ours = results["Fivefold"]
    counts = {name: r[0].get("parameters") for name, r in results.items()}
    if len(set(counts.values())) != 1:
        sys.exit(f"error: {case}: the programs train different models: {counts}")
    for name, rows in results.items():
        median = lambda key: statistics.median(r[key] for r in rows)
        ratios = [peer["ms"] / own["ms"] for peer, own in zip(rows, ours)]
        ratio = "1" if rows is ours else (
            f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})")
        peak = f"{median('fma_peak_gflops'):.0f}" if "fma_peak_gflops" in rows[0] else ""
        share = f"{100 * median('mfu'):.0f} %" if "mfu" in rows[0] else ""
        parts = " / ".join(f"{median(k + '_ms'):.0f}" for k in ("forward", "backward", "optimizer"))
        core = rows[0].get("blas_core", rows[0].get("isa", ""))
        print(f"| {case} | {name} | {median('ms'):.0f} | {median('tokens_per_s'):.0f} | {ratio} | "
              f"{parts} | {median('peak_rss_mib'):.0f} | {core} | {peak} | {share} | "
              f"{100 * max(r['others'] for r in rows):.0f} % |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=CASES, help="repeatable; all without it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, help="counted steps a process; each case has its own")
    parser.add_argument("--binary", help="our train_step; built in build/release without it")
    parser.add_argument("--peer-python", default="/usr/bin/python3")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--core-type", choices=("both", "environment", "unset"), default="both",
                        help="which of the peer's runs where the environment forces a core type")
    parser.add_argument("--json", help="append every process's line to this file")
    a = parser.parse_args()

    programs = {"Fivefold": ([build(a)], dict(os.environ)), **peers_of(a)}
    print(f"{a.threads} threads of {os.cpu_count()} CPUs; {a.rounds} rounds; medians. Ratio: the "
          "peer's ms over ours in the same round, median (lowest to highest). Others: share of the "
          "machine that other processes took, at worst.\n")
    print("| case | program | ms a step | tokens/s | ratio | forward / backward / AdamW ms | "
          "peak RSS MiB | kernels | FMA peak GFLOP/s | share of it | others |\n|" + "---|" * 11,
          flush=True)
    for case in a.case or CASES:
        results = rounds_of(programs, case, a)
        print_case(case, results, a)
        if a.json:
            with open(a.json, "a") as file:
                for name, rows in results.items():
                    for row in rows:
                        file.write(json.dumps({"case": case, "program": name, **row}) + "\n")


if __name__ == "__main__":
    main()
