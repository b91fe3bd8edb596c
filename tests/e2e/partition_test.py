#!/usr/bin/env python3
"""Tenants with parts of a device: what their programs see of it, that they work side by side, and changes of the policy.

    partition_test.py BUILD

Exit status 77 where the build folder lacks a part.
"""
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from serving import Server  # noqa: E402

COUNT = """
import ctypes, sys
cu = ctypes.CDLL(sys.argv[1])
count = ctypes.c_int()
if cu.cuInit(0) or cu.cuDeviceGetAttribute(ctypes.byref(count), 16, 0):
    sys.exit("the driver does not say how many multiprocessors there are")
print(count.value)
"""


def policy(left, right):
    return f"""version: 1
devices: [{{index: 0, mode: partition}}]
tenants:
  - {{name: left, memory: 256MiB, partition: {left}}}
  - {{name: right, memory: 256MiB, partition: {right}}}
"""


def main(arguments):
    build = pathlib.Path(arguments[0]).resolve()
    softcuda, client, conformance = build / "lib/libcuda-soft.so", build / "lib/libcuda.so.1", build / "bin/driver_conformance"
    for part in [softcuda, client, build / "bin/cuplexd", build / "bin/cuplexctl", conformance]:
        if not part.exists():
            print(f"partition_test: skipped, since there is no {part.relative_to(build)}")
            return 77
    failures = []

    with Server(build, str(softcuda), policy("2of7", "5of7"),
                {"SOFTCUDA_WORKERS": "2", "SOFTCUDA_MULTIPROCESSORS": "7", "SOFTCUDA_MEMORY": "1GiB"}) as server:
        def multiprocessors(tenant):
            ran = subprocess.run([sys.executable, "-c", COUNT, str(client)], env=server.environment(tenant), capture_output=True,
                                 text=True, timeout=60)
            return int(ran.stdout) if ran.returncode == 0 else f"{ran.stdout}{ran.stderr}"

        def expect(what, got, wanted):
            if got != wanted:
                failures.append(f"{what}: {got}, {wanted} was expected")

        expect("multiprocessors that left sees", multiprocessors("left"), 2)
        expect("multiprocessors that right sees", multiprocessors("right"), 5)

        running = [(tenant, subprocess.Popen([str(conformance), "--driver", str(client), "--total-mib", "256",
                                              "--gtest_filter=Launches.*:GreenContexts.*:Graphs.*:Order.*"],
                                             env=server.environment(tenant), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.STDOUT, text=True)) for tenant in ("left", "right")]
        for tenant, process in running:
            said, _ = process.communicate(timeout=120)
            if process.returncode:
                failures.append(f"{tenant}: driver_conformance ended with status {process.returncode} and said:\n{said}")

        # A policy that gives away more than there is changes nothing.
        server.write_policy(policy("3of7", "5of7"))
        refused = server.control("reload")
        if refused.returncode == 0 or "left" not in refused.stdout + refused.stderr:
            failures.append(f"a policy that gives 8 of 7 parts was answered: {refused.stdout}{refused.stderr}")
        time.sleep(0.3)  # a changed file is also taken by itself
        expect("multiprocessors that left sees after a faulty policy", multiprocessors("left"), 2)

        server.write_policy(policy("1of7", "6of7"))
        until = time.monotonic() + 10
        while multiprocessors("left") != 1 and time.monotonic() < until:
            time.sleep(0.05)
        expect("multiprocessors that left sees after a change", multiprocessors("left"), 1)
        expect("multiprocessors that right sees after a change", multiprocessors("right"), 6)
        if failures:
            print(f"the server's log ends with:\n{server.tail(40)}")
    for failure in failures:
        print(f"partition_test: {failure}")
    if not failures:
        print("partition_test: ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
