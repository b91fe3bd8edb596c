#!/usr/bin/env python3
"""What cuplexctl records of two tenants' work is what they did, and cuplex-simulate plays it under other terms.

    record_test.py BUILD        Exit status 77 where the build folder lacks a part.

Paced loads, which ask for the same whatever they get: so a policy that gives one of them less leaves its work waiting.
"""
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from serving import Server, end  # noqa: E402

BUILD = None
SECONDS = 4
RECORDED = 2
POLICY = """version: 1
devices: [{index: 0, mode: timeslice}]
tenants:
  - {name: steady, memory: 256MiB}
  - {name: other, memory: 256MiB}
"""
LIMITED = POLICY.replace("{name: steady, memory: 256MiB}", "{name: steady, memory: 256MiB, limit: LIMIT%}")


def simulate(*words):
    return subprocess.run([str(BUILD / "bin/cuplex-simulate"), *words], capture_output=True, text=True, timeout=60)


class Record(unittest.TestCase):
    def test_a_recorded_load_is_what_was_done_and_plays_under_other_terms(self):
        with Server(BUILD, str(BUILD / "lib/libcuda-soft.so"), POLICY, {"SOFTCUDA_WORKERS": "1"}) as server:
            # 20 kernels a second each, of 3000 dependent steps in 40 blocks.
            loads = [subprocess.Popen([str(BUILD / "bin/bench_sharing"), "--seconds", str(SECONDS), "--period-ms", "50", "--blocks",
                                       "40", "--rounds", rounds], env=server.environment(tenant), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, text=True) for tenant, rounds in (("steady", "30000"), ("other", "3000"))]
            try:
                time.sleep(1)
                ran = server.control("record", "--seconds", str(RECORDED))
                self.assertEqual(ran.returncode, 0, ran.stderr)
                done = [len(json.loads(load.communicate(timeout=60)[0])["done"]) for load in loads]
            finally:
                for load in loads:
                    end(load, 2)
        rows = list(csv.DictReader(io.StringIO(ran.stdout)))
        work = {}
        for row in rows:
            work.setdefault(row["tenant"], []).append(int(row["device_ns"]))
            self.assertEqual(row["device"], "0")
            self.assertLess(int(row["at_ns"]), (RECORDED + 1) * 1_000_000_000)
        self.assertEqual(sorted(work), ["other", "steady"])
        for (tenant, had), n in zip(sorted(work.items(), reverse=True), done):
            self.assertLessEqual(len(had), n, tenant)
            self.assertGreater(len(had), n * RECORDED / SECONDS / 4, tenant)  # a busy machine asks late
        mean = {tenant: sum(had) / len(had) for tenant, had in work.items()}
        self.assertGreater(mean["steady"], 4 * mean["other"], "ten times the steps")

        with tempfile.TemporaryDirectory() as folder:
            load, policy = pathlib.Path(folder, "load.csv"), pathlib.Path(folder, "policy.yaml")
            load.write_text(ran.stdout)
            policy.write_text(POLICY)
            alike = simulate("--policy", str(policy), "--load", str(load))
            self.assertEqual(alike.returncode, 0, alike.stderr)
            table = {line.split()[0]: line.split() for line in alike.stdout.splitlines()}
            self.assertEqual(int(table["steady"][4]) + int(table["steady"][5]), len(work["steady"]))
            # A limit of a quarter of what it asked for.
            asked = float(table["steady"][1])
            self.assertGreater(asked, 4)
            policy.write_text(LIMITED.replace("LIMIT", str(int(asked / 4))))
            less = simulate("--policy", str(policy), "--load", str(load))
            self.assertEqual(less.returncode, 0, less.stderr)
            limited = {line.split()[0]: line.split() for line in less.stdout.splitlines()}
            self.assertLess(float(limited["steady"][1]), int(asked / 4) + 2)
            self.assertGreater(int(limited["steady"][5]), len(work["steady"]) / 3)
            self.assertAlmostEqual(float(limited["other"][1]), float(table["other"][1]), delta=1)
            unknown = simulate("--policy", str(policy), "--load", str(load), "--device", "7")
            self.assertEqual(unknown.returncode, 1)
            self.assertIn("records nothing on device 7, but on others", unknown.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    for part in ("bin/cuplexd", "bin/cuplexctl", "bin/cuplex-simulate", "bin/bench_sharing", "lib/libcuda-soft.so", "lib/libcuda.so.1"):
        if not (BUILD / part).exists():
            print(f"record_test: {BUILD / part} is not there", file=sys.stderr)
            sys.exit(77)
    unittest.main()
