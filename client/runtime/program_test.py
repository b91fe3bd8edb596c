"""Runs a CUDA program on softcuda, directly and through a server: python3 program_test.py BUILD PROGRAM

The program finds libcudart and libcuda.so.1 as any program does, by LD_LIBRARY_PATH. Exit status 77, which CTest counts as
skipped, where the build folder lacks softcuda; without a server or a client library the program runs directly alone.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from serving import Server  # noqa: E402

SECONDS = 100


def run(way, program, folders, **more):
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, folders)), **more}
    try:
        ran = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        print(f"{program}, {way}: did not end within {SECONDS} s")
        return 1
    print(f"{program}, {way}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return int(ran.returncode != 0)


def main(build, program):
    libraries = pathlib.Path(build).resolve() / "lib"
    softcuda = libraries / "libcuda-soft.so"
    if not softcuda.exists():
        print("program_test: skipped, since there is no lib/libcuda-soft.so")
        return 77
    failures = 0
    with tempfile.TemporaryDirectory(prefix="cuplex-direct-") as direct:
        pathlib.Path(direct, "libcuda.so.1").symlink_to(softcuda)
        failures += run("directly", program, [direct, libraries])
    if (libraries / "libcuda.so.1").exists() and (libraries.parent / "bin" / "cuplexd").exists():
        with Server(pathlib.Path(build).resolve(), str(softcuda)) as server:
            failures += run("forwarded", program, [libraries], CUPLEX_SOCKET=server.attach("train")["CUPLEX_SOCKET"])
            if failures:
                print(f"the server's log ends with:\n{server.tail()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
