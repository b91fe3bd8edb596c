#!/usr/bin/env python3
"""Every example's --help, its answers to options that make no sense, and its answer where there is no driver.

    options_test.py FOLDER NAME...      FOLDER holds the programs NAME_driver
"""
import os
import pathlib
import subprocess
import sys
import tempfile

FOLDER, NAMES = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]

NONSENSE = [["--size", "0"], ["--size", "-3"], ["--size", "1e6"], ["--size"], ["--size", "99999999999999999999"],
            ["--repeat", "0"], ["--repeat", "many"], ["--sise", "7"], ["7"], ["--size", "7", "--size", "8"]]


def main():
    failures = []

    def expect(holds, name, arguments, ran, what):
        if not holds:
            failures.append(f"{name} {' '.join(arguments)}: {what}; status {ran.returncode}, "
                            f"stdout {ran.stdout!r}, stderr {ran.stderr!r}")

    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "LD_LIBRARY_PATH": empty}

        def run(name, *arguments):
            return subprocess.run([FOLDER / f"{name}_driver", *arguments], capture_output=True, text=True, env=environment,
                                  cwd=empty, timeout=60)

        for name in NAMES:
            ran = run(name, "--help")
            expect(ran.returncode == 0 and ran.stdout.startswith(f"{name}: ") and "--repeat" in ran.stdout
                   and not ran.stderr, name, ["--help"], ran, "help on stdout and status 0 were expected")
            for arguments in NONSENSE:
                ran = run(name, *arguments)
                expect(ran.returncode == 2 and not ran.stdout and ran.stderr.startswith(f"{name}: ")
                       and ran.stderr.count("\n") == 1, name, arguments, ran,
                       "one sentence on stderr and status 2 were expected")
        # A machine with NVIDIA's driver has one in its system folders, whatever LD_LIBRARY_PATH says.
        ran = run(NAMES[0])
        if ran.returncode != 0:
            expect(ran.returncode == 1 and "libcuda.so.1" in ran.stderr and ran.stderr.count("\n") == 1, NAMES[0], [],
                   ran, "one sentence that names libcuda.so.1 and status 1 were expected")
    for failure in failures:
        print(failure)
    print(f"options_test: {len(NAMES)} programs, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
