"""What the decision whose work goes to a device next costs, with 1 to 1000 tenants that all have work.

`equal`: tenants of the same terms. `mixed`: weights, 21 classes, forty guarantees of 2%, and every third tenant limited.
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))

from serving import Failure  # noqa: E402


def measure(build):
    program = build / "bin" / "bench_decision"
    if not program.exists():
        raise Failure(f"{program} is not built.")
    out = subprocess.run([program], capture_output=True, text=True, timeout=120)
    if out.returncode:
        raise Failure(f"{program} ended with {out.returncode}: {out.stderr.strip()}")
    rows = []
    for line in out.stdout.splitlines():
        metric, value = line.split()
        rows.append({"metric": metric, "value": float(value), "unit": "ns", "target": "< 1000"})
    return rows
