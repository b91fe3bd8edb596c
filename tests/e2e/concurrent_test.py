#!/usr/bin/env python3
"""Two tenants of one device in mode concurrent: their kernels run at the same time, and a limit still holds.

    concurrent_test.py BUILD             Exit status 77 where the build folder lacks a part.
    concurrent_test.py client SECONDS    a tenant's program: kernels of 10 ms, and when each of them ran

On softcuda with two workers, and with kernels of one thread that look at the clock, so two of them fit beside each other
however slow the machine is.
"""
import ctypes
import json
import pathlib
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from serving import Server, end  # noqa: E402

BUILD = None
KERNEL_NS = 10_000_000
AHEAD = 4       # kernels given before the oldest is waited for
WARM_UP = 3     # kernels until the server knows what they take
WATCHED_S = 3.0

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry stamp(.param .u64 out, .param .u64 ns)
{
  .reg .u64 %out, %ns, %begin, %now, %passed;
  .reg .pred %early;
  ld.param.u64 %out, [out];
  ld.param.u64 %ns, [ns];
  mov.u64 %begin, %globaltimer;
again:
  mov.u64 %now, %globaltimer;
  sub.u64 %passed, %now, %begin;
  setp.lt.u64 %early, %passed, %ns;
  @%early bra again;
  st.global.u64 [%out], %begin;
  st.global.u64 [%out+8], %now;
  ret;
}
"""


class Client:
    """The driver API by ctypes; every code must be 0."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        context, module, self.function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)
        self("cuModuleLoadData", ctypes.byref(module), PTX + b"\0")
        self("cuModuleGetFunction", ctypes.byref(self.function), module, b"stamp")
        self.out = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(self.out), ctypes.c_size_t(1 << 20))

    def __call__(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            sys.exit(f"{name} answered {code}")

    def launch(self, index):
        arguments = [ctypes.c_uint64(self.out.value + 16 * index), ctypes.c_uint64(KERNEL_NS)]
        pointers = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments))
        self("cuLaunchKernel", self.function, 1, 1, 1, 1, 1, 1, 0, None, pointers, None)

    def run(self, seconds):
        for _ in range(WARM_UP):
            self.launch(0)
            self("cuCtxSynchronize")
        print("ready", flush=True)
        sys.stdin.readline()
        until, count, events = time.monotonic() + seconds, 0, []
        while time.monotonic() < until:
            self.launch(count)
            event = ctypes.c_void_p()
            self("cuEventCreate", ctypes.byref(event), 2)
            self("cuEventRecord", event, None)
            events.append(event)
            count += 1
            if count > AHEAD:
                self("cuEventSynchronize", events[count - AHEAD - 1])
        self("cuCtxSynchronize")
        stamps = (ctypes.c_uint64 * (2 * count))()
        self("cuMemcpyDtoH_v2", stamps, self.out, ctypes.c_size_t(16 * count))
        print(json.dumps([[stamps[2 * i], stamps[2 * i + 1]] for i in range(count)]), flush=True)


def beside(one, other):
    """The part of `one`'s time on the device in which the other was there too."""
    shared = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in one for b in other)
    return shared / sum(end - begin for begin, end in one)


class Concurrent(unittest.TestCase):
    def play(self, device, limits=("", "")):
        """What two tenants' kernels took, and their shares of the device by the server's account."""
        tenants = "".join(f"  - {{name: {name}, memory: 64MiB{limit}}}\n" for name, limit in zip("ab", limits))
        policy = f"version: 1\ndevices: [{{index: 0, {device}}}]\ntenants:\n{tenants}"
        server = Server(BUILD, str(BUILD / "lib/libcuda-soft.so"), policy,
                        {"SOFTCUDA_MEMORY": "512MiB", "SOFTCUDA_WORKERS": "2"})
        processes = []
        self.addCleanup(server.stop)
        server.wait_until_up()
        for name in "ab":
            processes.append(subprocess.Popen([sys.executable, __file__, "client", str(WATCHED_S + 1)],
                                              env=server.environment(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                              text=True))
            self.addCleanup(end, processes[-1], 2)
        for process in processes:
            self.assertEqual(process.stdout.readline(), "ready\n")
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        time.sleep(0.5)
        before, began = self.device_seconds(server), time.monotonic()
        time.sleep(WATCHED_S)
        after, passed = self.device_seconds(server), time.monotonic() - began
        ran = []
        for process in processes:
            out, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0)
            ran.append(json.loads(out))
        return ran, [(after[name] - before[name]) / passed for name in "ab"]

    @staticmethod
    def device_seconds(server):
        return {labels["tenant"]: value for name, labels, value in server.scrape()
                if name == "cuplex_tenant_device_seconds_total"}

    def test_kernels_of_two_tenants_overlap(self):
        (a, b), shares = self.play("mode: concurrent")
        self.assertGreater(beside(a, b), 0.8)
        self.assertAlmostEqual(shares[0], 0.5, delta=0.05)
        self.assertAlmostEqual(shares[1], 0.5, delta=0.05)

    def test_in_turns_they_do_not(self):
        (a, b), _ = self.play("mode: timeslice")
        # The next is there a little before the one before it has ended, so that the device does not stand still.
        self.assertLess(beside(a, b), 0.4)

    def test_a_limit_holds_beside_others(self):
        (a, b), shares = self.play("mode: concurrent", ("", ", limit: 20%"))
        self.assertAlmostEqual(shares[1], 0.2, delta=0.03)
        self.assertGreater(shares[0], 0.7)
        # Where it runs the other runs too, so it is there for twice its share.
        self.assertGreater(beside(b, a), 0.8)


if __name__ == "__main__":
    if sys.argv[1] == "client":
        Client().run(float(sys.argv[2]))
        sys.exit(0)
    BUILD = pathlib.Path(sys.argv[1]).resolve()
    for part in ["lib/libcuda-soft.so", "lib/libcuda.so.1", "bin/cuplexd"]:
        if not (BUILD / part).exists():
            print(f"concurrent_test: skipped, since there is no {part}")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
