"""What kernels cost on softcuda: one worker against plain C++, two against one, compiling, launches, barriers."""
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))

from serving import Failure  # noqa: E402

FEWEST_NANOSECONDS = 1e6  # a shorter run says nothing of what a second worker is worth


def objects(build, arguments, workers=1, cache="off", more=None):
    """What bench_softcuda prints. `cache` is the folder for compiled kernels, `more` is of its environment."""
    environment = {**os.environ, "SOFTCUDA_WORKERS": str(workers), "SOFTCUDA_CACHE_DIR": cache, **(more or {})}
    command = [str(build / "bin/bench_softcuda"), "--json", *arguments]
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"bench_softcuda could not be run to its end: {error}") from None
    if done.returncode:
        raise Failure(f"bench_softcuda {' '.join(arguments)} ended with status {done.returncode} and said:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def device_times(build, names, workers, cache):
    arguments = ["--device-alone", "--seconds", "0.1"] + [word for name in names for word in ("--kernel", name)]
    return {found["kernel"]: found["device"] for found in objects(build, arguments, workers, cache)}


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def measure(build):
    kernels = objects(build, ["--seconds", "0.5"])
    overheads = {found["overhead"]: found["value"] for found in objects(build, ["--overheads"])}
    wide = [kernel["kernel"] for kernel in kernels if kernel["wide"] and kernel["device"] >= FEWEST_NANOSECONDS]
    one, two = [], []
    with tempfile.TemporaryDirectory(prefix="cuplex-bench-") as cache:
        objects(build, ["--compile"], cache=cache)
        cached = objects(build, ["--compile"], cache=cache)
        for _ in range(3):  # taking turns, so that what else the machine does falls on both
            one.append(device_times(build, wide, 1, cache))
            two.append(device_times(build, wide, 2, cache))

    ratios = {kernel["kernel"]: kernel["device"] / kernel["native"] for kernel in kernels}
    rows = [{"metric": f"{name}, softcuda / native", "value": ratio, "unit": "ratio", "target": "<= 4"}
            for name, ratio in ratios.items()]
    rows.append({"metric": f"{len(ratios)} kernels, softcuda / native, geometric mean", "value": geometric_mean(ratios.values()),
                 "unit": "ratio", "target": "<= 1.5"})
    speed_ups = {name: min(run[name] for run in one) / min(run[name] for run in two) for name in wide}
    rows += [{"metric": f"{name}, two workers / one", "value": speed_up, "unit": "speed"} for name, speed_up in speed_ups.items()]
    rows.append({"metric": f"{len(speed_ups)} kernels, two workers / one, median",
                 "value": statistics.median(speed_ups.values()), "unit": "speed", "target": ">= 1.8"})
    rows += [
        {"metric": "barrier", "value": overheads["barrier, of a thread"], "unit": "ns/thread", "target": "<= 0.5"},
        {"metric": "compiling, no cache, median", "value": statistics.median(k["compile"] for k in kernels) / 1e6,
         "unit": "ms/module", "target": "<= 30"},
        {"metric": "compiling, no cache, longest", "value": max(k["compile"] for k in kernels) / 1e6, "unit": "ms/module"},
        {"metric": "compiling, warm cache, median", "value": statistics.median(k["compile"] for k in cached) / 1e6,
         "unit": "ms/module", "target": "<= 1"},
        {"metric": "empty launch, back to back", "value": overheads["launch, back to back"], "unit": "ns", "target": "<= 1000"},
        {"metric": "empty kernel of a graph of 200", "value": overheads["kernel of a graph of 200"], "unit": "ns", "target": "<= 1000"},
        {"metric": "empty launch and wait", "value": overheads["launch and wait"], "unit": "ns", "target": "<= 1000"},
    ]
    return rows
