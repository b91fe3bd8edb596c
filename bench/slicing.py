"""What slicing costs on softcuda: kernels in slices of 2 ms against whole ones, and rewriting them."""
import json
import math
import pathlib
import re
import subprocess
import tempfile

from bench.softcuda import geometric_mean, objects
from serving import Failure

LONGEST_NANOSECONDS = 2_000_000
ROUNDS = 7
ROOT = pathlib.Path(__file__).resolve().parent.parent


def time_of(build, kernel, cache, more=None, arguments=()):
    """Nanoseconds: the least of many runs, which says most on a machine that others use too."""
    found = objects(build, ["--device-alone", "--seconds", "0.1", "--kernel", kernel, *arguments], cache=cache, more=more)
    return found[0]["least"]


def rewriting(build, folder):
    """Milliseconds to parse and to slice a MB of PTX: the corpus and the modules of the benchmarks."""
    try:
        subprocess.run([build / "bin/print_corpus", folder / "corpus"], check=True, stdout=subprocess.DEVNULL)
        modules = [*(folder / "corpus").glob("*.ptx"), *ROOT.glob("bench/softcuda/*/*.ptx")]
        said = subprocess.run([build / "bin/print_sliced", folder / "sliced", *modules], check=True, capture_output=True,
                              text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"print_sliced could not be run to its end: {error}") from None
    megabytes, parsing, slicing = map(float, re.search(r"([\d.]+) MB parsed in ([\d.]+) ms, sliced in ([\d.]+) ms", said).groups())
    return parsing / megabytes, slicing / megabytes


def measure(build):
    library = build / "lib/libcuda-slicing.so"
    if not library.exists():
        raise Failure(f"there is no {library}")
    ratios, slices, launches = {}, 0, 0
    with tempfile.TemporaryDirectory(prefix="cuplex-bench-") as folder:
        folder = pathlib.Path(folder)
        report = folder / "report.json"
        caches = {"whole": str(folder / "whole"), "sliced": str(folder / "sliced")}
        more = {"SLICING_LONGEST_NS": str(LONGEST_NANOSECONDS), "SLICING_REPORT": str(report)}
        names = [kernel["kernel"] for kernel in objects(build, ["--device-alone", "--compile"], cache=caches["whole"])]
        for name in names:
            least = {"whole": math.inf, "sliced": math.inf}
            for number in range(ROUNDS):  # taking turns, so that what else the machine does falls on both
                for way in ("whole", "sliced") if number % 2 else ("sliced", "whole"):
                    given = (more, ["--driver", str(library)]) if way == "sliced" else ()
                    least[way] = min(least[way], time_of(build, name, caches[way], *given))
            ratios[name] = least["sliced"] / least["whole"]
            said = json.loads(report.read_text())
            slices, launches = slices + said["slices"], launches + said["sliced"]
        parsing, slicing = rewriting(build, folder)
    rows = [{"metric": f"{name}, sliced / whole", "value": ratio, "unit": "ratio"} for name, ratio in ratios.items()]
    rows += [
        {"metric": f"{len(ratios)} kernels, sliced / whole, geometric mean", "value": geometric_mean(ratios.values()),
         "unit": "ratio", "target": "<= 1.05"},
        {"metric": "slices to a launch, mean", "value": slices / launches, "unit": "slices"},
        {"metric": "parsing PTX", "value": parsing, "unit": "ms/MB"},
        {"metric": "slicing what is parsed", "value": slicing, "unit": "ms/MB"},
    ]
    return rows
