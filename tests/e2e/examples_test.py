#!/usr/bin/env python3
"""Runs every example in every form there is, directly on a driver and through a server, and compares what they print.

    examples_test.py BUILD [NAME...]      BUILD is a build folder, NAME an example; all of them by themselves

Directly means that softcuda is the program's libcuda.so.1; forwarded, that the client library is, in front of a cuplexd
that runs softcuda. The forms NAME_driver and, where nvcc was found, NAME_cu must print the same bytes, either way, and
write the same picture. At the end all examples run at the same time through one server. Exit status 77, which CTest
counts as skipped, where the build folder lacks a part.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from serving import Failure, Server  # noqa: E402

NAMES = sorted(source.parent.name for source in ROOT.glob("examples/*/*_driver.cc"))
GRAPHS = {"graph_replay"}  # need a driver with graphs; where softcuda says that it has none, they run forwarded alone
TENANT = "train"
SECONDS = 120  # until a program counts as hanging; each takes about one


class NotCarried(Failure):
    """The driver says that it has no such call."""


def environment(*folders, **more):
    """Ours, with these library folders first and nothing of a server but what is given."""
    kept = {name: value for name, value in os.environ.items() if name != "CUPLEX_SOCKET"}
    return {**kept, "LD_LIBRARY_PATH": ":".join(str(folder) for folder in folders), **more}


def run(program, name, given):
    """(stdout, the picture's bytes or None) of one run, which must say that its result is right."""
    with tempfile.TemporaryDirectory(prefix="cuplex-example-") as folder:
        try:
            ran = subprocess.run([program], cwd=folder, env=given, stdin=subprocess.DEVNULL, capture_output=True,
                                 text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"did not end within {SECONDS} s") from None
        if ran.returncode == 1 and re.search(r"CUDA_ERROR_NOT_SUPPORTED|cudaErrorNotSupported", ran.stderr):
            raise NotCarried(ran.stderr.strip())
        if ran.returncode != 0:
            raise Failure(f"exit status {ran.returncode}, stdout {ran.stdout!r}, stderr {ran.stderr!r}")
        last = ran.stdout.splitlines()[-1] if ran.stdout else ""
        if not re.fullmatch(rf"{name}: ok checksum=[0-9a-f]{{16}} elements=[1-9]\d*", last):
            raise Failure(f"its last line is {last!r}, expected \"{name}: ok checksum=... elements=...\"")
        picture = pathlib.Path(folder, "mandelbrot.png")
        return ran.stdout, picture.read_bytes() if picture.exists() else None


class Comparison:
    """What each example printed first; every later run must print the same."""

    def __init__(self):
        self.first, self.failures, self.runs = {}, [], 0

    def take(self, name, way, get, may_lack=False):
        self.runs += 1
        try:
            said = get()
        except NotCarried as lack:
            (print if may_lack else self.failures.append)(f"{name}, {way}: {lack}")
            return
        except Failure as failure:
            self.failures.append(f"{name}, {way}: {failure}")
            return
        before, first_way = self.first.setdefault(name, (said, way))
        if said[0] != before[0]:
            self.failures.append(f"{name}, {way}: printed {said[0]!r}, but {first_way} it printed {before[0]!r}")
        elif said[1] != before[1]:
            self.failures.append(f"{name}, {way}: wrote another picture than {first_way}")


def main(arguments):
    build, names = pathlib.Path(arguments[0]).resolve(), arguments[1:] or NAMES
    binaries, libraries = build / "bin", build / "lib"
    softcuda = libraries / "libcuda-soft.so"
    for part in [softcuda, libraries / "libcuda.so.1", binaries / "cuplexd"]:
        if not part.exists():
            print(f"examples_test: skipped, since there is no {part.relative_to(build)}")
            return 77
    forms = [form for form in ("driver", "cu") if all((binaries / f"{name}_{form}").exists() for name in names)]
    if "driver" not in forms:
        print("examples_test: an example has not been built")
        return 1

    comparison = Comparison()
    with tempfile.TemporaryDirectory(prefix="cuplex-direct-") as direct, Server(build, str(softcuda)) as server:
        pathlib.Path(direct, "libcuda.so.1").symlink_to(softcuda)
        ways = {"directly": environment(direct, libraries),
                "forwarded": environment(libraries, CUPLEX_SOCKET=server.attach(TENANT)["CUPLEX_SOCKET"])}
        for name in names:
            for form in forms:
                for way, given in ways.items():
                    comparison.take(name, f"{form} form, {way}", lambda: run(binaries / f"{name}_{form}", name, given),
                                    may_lack=name in GRAPHS and way == "directly")
        with concurrent.futures.ThreadPoolExecutor(len(names)) as threads:
            together = [(name, threads.submit(run, binaries / f"{name}_driver", name, ways["forwarded"]))
                        for name in names]
            for name, future in together:
                comparison.take(name, "driver form, forwarded, beside all others", future.result)
        if comparison.failures:
            print(f"the server's log ends with:\n{server.tail()}")
    for failure in comparison.failures:
        print(failure)
    print(f"examples_test: {len(names)} examples, forms: {', '.join(forms)}; {comparison.runs} runs, "
          f"{len(comparison.failures)} failures")
    return 1 if comparison.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        print(f"examples_test: {failure}")
        sys.exit(1)
