#!/usr/bin/env python3
"""Runs programs on libcuda-slicing.so: every launch whole and in slices of random size, all memory compared after both.

    slicing_test.py BUILD corpus|examples|bench

The programs check their own results besides. Which kernels must run whole, and why, is listed here; a kernel that is
refused for another reason fails the test, and so does a reason that no kernel has any more.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Launches inside of graphs do not come by where launches are sliced here.
GRAPHS = {"graph_replay"}
EXAMPLES = sorted({source.parent.name for source in ROOT.glob("examples/*/*_driver.cc")} - GRAPHS)

# Reasons, with kernel and line left out, and how many kernels have each.
REFUSED = {
    "corpus": {
        "calls a function through a pointer": 1,
        "takes the address of a function": 1,
        "declares too many bytes of parameters": 1,
    },
    "examples": {},
    "bench": {},
}
# Launches that are of several slices; most kernels of the corpus are of one block.
FEWEST_IN_SEVERAL = {"corpus": 1500, "examples": 40, "bench": 200}


def programs(build, what):
    """The command lines, and what is wrong with what one printed, if anything."""
    library = build / "lib/libcuda-slicing.so"
    if what == "corpus":
        return [[build / "bin/ptx_conformance", "--driver", library]]
    if what == "bench":
        return [[build / "bin/bench_softcuda", "--driver", library, "--compile", "--device-alone"]]
    return [[build / f"bin/{name}_driver"] for name in EXAMPLES]


def reason_of(refusal):
    reason = re.sub(r"^kernel `[^`]*` cannot be sliced: (line \d+ )?", "", refusal)
    reason = re.sub(r"^takes the address of `.*", "takes the address of a function", reason)
    return re.sub(r"^declares \d+ bytes of parameters.*", "declares too many bytes of parameters", reason)


def main(build, what):
    build = pathlib.Path(build).resolve()
    wrong, reasons = [], {}
    total = {"kernels": 0, "refused": 0, "sliced": 0, "several": 0, "slices": 0}
    with tempfile.TemporaryDirectory(prefix="cuplex-slicing-") as folder:
        pathlib.Path(folder, "libcuda.so.1").symlink_to(build / "lib/libcuda-slicing.so")
        for number, command in enumerate(programs(build, what)):
            report = pathlib.Path(folder, "report.json")
            report.unlink(missing_ok=True)
            # One worker: blocks come in their order, so that also sums of floats by atomics are the same.
            given = {**os.environ, "LD_LIBRARY_PATH": f"{folder}:{build / 'lib'}", "SLICING_REPORT": str(report),
                     "SLICING_SEED": str(number + 1), "SOFTCUDA_WORKERS": "1", "SOFTCUDA_CACHE_DIR": "off", "CUPLEX_LOG": "off"}
            ran = subprocess.run(command, cwd=folder, env=given, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            name = pathlib.Path(command[0]).name
            if ran.returncode or not report.exists():
                wrong.append(f"{name}: exit status {ran.returncode}\n{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}")
                continue
            said = json.loads(report.read_text())
            wrong += [f"{name}: {sentence}" for sentence in said["wrong"]]
            for count in ("sliced", "several", "slices"):
                total[count] += said[count]
            for kernel, refusal in said["kernels"].items():
                total["kernels"] += 1
                if refusal:
                    total["refused"] += 1
                    reasons.setdefault(reason_of(refusal), []).append(f"{name}'s {kernel}")
    print(f"{what}: {total['kernels']} kernels, {total['refused']} refused; {total['sliced']} launches sliced, "
          f"{total['several']} of them into several slices, {total['slices']} slices")
    for reason, kernels in reasons.items():
        print(f"  refused: {', '.join(kernels)}: {reason}")
    if {reason: len(kernels) for reason, kernels in reasons.items()} != REFUSED[what]:
        wrong.append(f"refused were {reasons}, expected {REFUSED[what]}")
    if total["several"] < FEWEST_IN_SEVERAL[what]:
        wrong.append(f"{total['several']} launches were of several slices, expected {FEWEST_IN_SEVERAL[what]} or more")
    for sentence in wrong:
        print(sentence)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
