"""What the way through the server costs: launches, round trips, copies, attaching, whole programs; on softcuda."""
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))

from serving import Failure, Server  # noqa: E402

BATCH_REPETITIONS = 15
TENANT = "train"
NO_GRAPHS = "the driver has no graphs"
GRAPH_KERNELS = 200


def run(command, environment, seconds=300):
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{pathlib.Path(command[0]).name} could not be run to its end: {error}") from None
    if done.returncode:
        raise Failure(f"{pathlib.Path(command[0]).name} ended with status {done.returncode} and said:\n{done.stdout}{done.stderr}")
    return done.stdout


def medians(build, environment):
    """{benchmark: median over repetitions of its real time in ns}."""
    said = run([str(build / "bin/bench_transport"), "--benchmark_format=json", f"--benchmark_repetitions={BATCH_REPETITIONS}",
                "--benchmark_report_aggregates_only=true"], environment)
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    found = {}
    for entry in json.loads(said)["benchmarks"]:
        if entry.get("error_message") == NO_GRAPHS:
            continue
        if entry.get("error_occurred"):
            raise Failure(f"{entry['name']}: {entry['error_message']}")
        if entry.get("aggregate_name") == "median":
            name = "/".join(p for p in entry["run_name"].split("/") if p.split(":")[0] not in ("iterations", "real_time", "manual_time",
                                                                                              "repeats"))
            found[name] = entry["real_time"] * scale[entry["time_unit"]]
    return found


def seconds_of(command, environment):
    began = time.monotonic()
    run(command, environment)
    return time.monotonic() - began


def graph_rows(there, here):
    """Graphs of empty kernels; beside launches one by one, and beside the driver's own graphs where it has them."""
    if "GraphSustained" not in there:
        return []
    name = f"graph of {GRAPH_KERNELS} kernels"
    rows = [
        {"metric": f"{name}, launch, client side, median", "value": there["GraphLaunchCost"], "unit": "ns", "target": "< 1000"},
        {"metric": f"{name}, kernels a second, forwarded", "value": 1e9 / there["GraphSustained"], "unit": "1/s"},
        {"metric": f"{name}, forwarded, kernels a second / launches one by one, direct",
         "value": here["LaunchSustained"] / there["GraphSustained"], "unit": "ratio"},
    ]
    if "GraphSustained" in here:
        rows += [
            {"metric": f"{name}, launch, direct, median", "value": here["GraphLaunchCost"], "unit": "ns"},
            {"metric": f"{name}, kernels a second, forwarded / direct", "value": here["GraphSustained"] / there["GraphSustained"],
             "unit": "ratio", "target": ">= 0.9"},
        ]
    return rows


def measure(build):
    soft = build / "lib/libcuda-soft.so"
    examples = sorted((build / "bin").glob("*_driver"))
    with tempfile.TemporaryDirectory(prefix="cuplex-bench-") as folder:
        pathlib.Path(folder, "libcuda.so.1").symlink_to(soft)
        direct = {**os.environ, "LD_LIBRARY_PATH": folder}
        with Server(build, driver=str(soft)) as server:
            forwarded = server.environment(TENANT)
            there, here = medians(build, forwarded), medians(build, direct)
            attach = [float(run([str(build / "bin/bench_transport"), "--attach"], forwarded)) for _ in range(21)]
            ratios = []
            for example in examples:
                command = [str(example)] + (["--output", f"{folder}/picture.png"] if "mandelbrot" in example.name else [])
                try:
                    times = [(seconds_of(command, forwarded), seconds_of(command, direct)) for _ in range(3)]
                except Failure as failure:
                    if "CUDA_ERROR_NOT_SUPPORTED" not in str(failure):
                        raise
                    continue  # softcuda does not carry what it needs, so there is nothing to compare
                ratios.append((example.name.removesuffix("_driver"), min(f for f, _ in times) / min(d for _, d in times)))
    ping, copy = here["PingPong"], here["PlainMemcpy"]
    rows = [
        {"metric": "launch, client side, median", "value": there["LaunchCost"], "unit": "ns", "target": "< 1000"},
        {"metric": "launch, direct, median", "value": here["LaunchCost"], "unit": "ns"},
        {"metric": "launches a second, forwarded", "value": 1e9 / there["LaunchSustained"], "unit": "1/s"},
        {"metric": "launches a second, direct", "value": 1e9 / here["LaunchSustained"], "unit": "1/s"},
        {"metric": "launches a second, forwarded / direct", "value": here["LaunchSustained"] / there["LaunchSustained"],
         "unit": "ratio", "target": ">= 0.9"},
        {"metric": "shared-memory ping-pong", "value": ping, "unit": "ns"},
        {"metric": "round trip", "value": there["RoundTrip"], "unit": "ns"},
        {"metric": "round trip / ping-pong", "value": there["RoundTrip"] / ping, "unit": "ratio", "target": "<= 3"},
        {"metric": "synchronize when idle", "value": there["SynchronizeIdle"], "unit": "ns"},
        {"metric": "memcpy", "value": (32 << 20) / copy, "unit": "GB/s"},
    ]
    rows += graph_rows(there, here)
    for way, words in (("in", "host to device"), ("out", "device to host")):
        for kind, target in (("pageable", ">= 0.5"), ("pinned", ">= 0.8")):
            rows.append({"metric": f"{words}, {kind}, forwarded / memcpy", "value": copy / there[f"Copy/{way}_{kind}"],
                         "unit": "ratio", "target": target})
            rows.append({"metric": f"{words}, {kind}, direct / memcpy", "value": copy / here[f"Copy/{way}_{kind}"], "unit": "ratio"})
    rows.append({"metric": "attach", "value": statistics.median(attach) / 1e6, "unit": "ms", "target": "< 20"})
    rows += [{"metric": f"{name}, forwarded / direct", "value": ratio, "unit": "wall time"} for name, ratio in ratios]
    if ratios:
        mean = math.exp(statistics.fmean(math.log(ratio) for _, ratio in ratios))
        rows.append({"metric": f"{len(ratios)} examples, forwarded / direct, geometric mean", "value": mean, "unit": "wall time",
                     "target": "<= 1.1"})
    return rows
