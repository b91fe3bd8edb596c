"""What a policy promises and what tenants get: shares, limits, latency beside others; on softcuda with one worker."""
import contextlib
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))

from serving import Failure, Server, end  # noqa: E402

ROUNDS = 10000     # steps of a thread: a block takes some 20 us
MAX_SLICE_MS = 2.0
WARM_UP_S = 0.5    # of a scenario, not counted


class Tenant:
    """One tenant of a scenario: its terms, as YAML's flow, and its load."""

    def __init__(self, name, terms="", kernel_ms=1.0, kernels=1, depth=4, period_ms=0.0, empty=False, share=None, processes=1):
        self.name, self.terms, self.kernel_ms, self.kernels, self.depth = name, terms, kernel_ms, kernels, depth
        self.period_ms, self.empty, self.share, self.processes = period_ms, empty, share, processes


class Ran:
    """What one tenant got: completions as (s since the scenario's begin, kernels), latencies in ms, device seconds by time."""

    def __init__(self):
        self.done, self.latency_ms, self.device = [], [], []

    def kernels(self, begin, until):
        """Kernels done in [begin, until), a part of one where it was on its way at the edges."""
        return self.level(until) - self.level(begin)

    def level(self, at):
        before, count = 0.0, 0.0
        for when, total in self.done:
            if when >= at:
                return count + (total - count) * (at - before) / (when - before) if when > before else count
            before, count = when, total
        return count

    def device_seconds(self, begin, until):
        return self.device_level(until) - self.device_level(begin)

    def device_level(self, at):
        before = self.device[0]
        for sample in self.device:
            if sample[0] >= at:
                span = sample[0] - before[0]
                return before[1] + (sample[1] - before[1]) * (at - before[0]) / span if span > 0 else sample[1]
            before = sample
        return before[1]


class Rig:
    """A server under one policy, and loads beside each other on it."""

    def __init__(self, build):
        self.build = build
        self.load = str(build / "bin/bench_sharing")
        self.soft = str(build / "lib/libcuda-soft.so")
        self.driver = os.environ.get("CUPLEX_BENCH_DRIVER", self.soft)
        with self.serve([Tenant("alone")]) as server:
            said = self.run_load(server, "alone", ["--calibrate", "--blocks", "50", "--rounds", str(ROUNDS), "--seconds", "2"])
        self.block_ns = int(said) / 50

    def blocks(self, ms):
        return max(1, round(ms * 1e6 / self.block_ns))

    def policy(self, tenants, device=""):
        lines = ["version: 1", f"devices: [{{index: 0, {device or 'mode: timeslice'}}}]", "tenants:"]
        for tenant in tenants:
            lines.append(f"  - {{name: {tenant.name}, memory: 256MiB{', ' if tenant.terms else ''}{tenant.terms}}}")
        return "\n".join(lines)

    def serve(self, tenants, device=""):
        return Server(self.build, driver=self.driver, policy=self.policy(tenants, device), environment={"SOFTCUDA_WORKERS": "1", "SOFTCUDA_MULTIPROCESSORS": "7" if "partition" in device else "1"})

    def command(self, tenant, seconds, start_ns, graph):
        words = [self.load, "--seconds", str(seconds), "--start-ns", str(start_ns), "--kernels", str(tenant.kernels),
                 "--depth", str(tenant.depth), "--blocks", "1" if tenant.empty else str(self.blocks(tenant.kernel_ms)),
                 "--rounds", "0" if tenant.empty else str(ROUNDS)]
        if tenant.period_ms:
            words += ["--period-ms", str(tenant.period_ms)]
        return words + (["--graph"] if graph else [])

    def run_load(self, server, tenant, words):
        ran = subprocess.run([self.load, *words], env=server.environment(tenant), stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=120)
        if ran.returncode:
            raise Failure(f"bench_sharing ended with status {ran.returncode} and said:\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def play(self, tenants, seconds, graph=False, device="", during=None):
        """{tenant: Ran} of a scenario. `during(server, since)` is called when the loads have begun."""
        with self.serve(tenants, device) as server:
            start = time.monotonic_ns() + 1_500_000_000
            processes = []
            try:
                for tenant in tenants:
                    for _ in range(tenant.processes):
                        command = self.command(tenant, seconds + WARM_UP_S, start, graph)
                        processes.append((tenant, subprocess.Popen(command, env=server.environment(tenant.name),
                                                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                                                   stderr=subprocess.PIPE, text=True)))
                ran = {tenant.name: Ran() for tenant in tenants}
                over = threading.Event()
                origin = start + int(WARM_UP_S * 1e9)

                def sample():
                    while not over.is_set():
                        with contextlib.suppress(OSError):
                            samples = server.scrape()
                            at = (time.monotonic_ns() - origin) / 1e9
                            for name, labels, value in samples:
                                if name == "cuplex_tenant_device_seconds_total" and labels["tenant"] in ran:
                                    ran[labels["tenant"]].device.append((at, value))
                        over.wait(0.1)

                sampler = threading.Thread(target=sample)
                sampler.start()
                try:
                    if during:
                        during(server, processes, origin)
                    for tenant, process in processes:
                        out, err = process.communicate(timeout=seconds + 60)
                        if process.returncode and not (during and process.returncode < 0):
                            raise Failure(f"{tenant.name}: bench_sharing ended with status {process.returncode}: {err}")
                        if process.returncode:
                            continue
                        said = json.loads(out)
                        ran[tenant.name].done = [((at - origin) / 1e9, n * tenant.kernels) for at, n in said["done"]]
                        ran[tenant.name].latency_ms = [ns / 1e6 for ns in said["latency_ns"]]
                finally:
                    over.set()
                    sampler.join()
                return ran
            finally:
                for _, process in processes:
                    end(process, 2)


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def share_rows(rig, name, tenants, seconds, graph):
    """Worst distance from the share each tenant should have of what all got, over the whole time and in every second."""
    ran = rig.play(tenants, seconds, graph)
    work = {t.name: t.kernel_ms for t in tenants}

    def parts(begin, until):
        got = {n: r.kernels(begin, until) * work[n] for n, r in ran.items()}
        total = sum(got.values())
        return {n: 100 * g / total for n, g in got.items()}

    want = {t.name: t.share for t in tenants}
    whole = max(abs(p - want[n]) for n, p in parts(0, seconds).items())
    windows = max(abs(p - want[n]) for s in range(int(seconds)) for n, p in parts(s, s + 1).items())
    charged = {n: r.device_seconds(0, seconds) for n, r in ran.items()}
    off = max(abs(100 * c / sum(charged.values()) - want[n]) for n, c in charged.items())
    total = sum(r.kernels(0, seconds) * work[n] for n, r in ran.items()) / 1e3 / seconds
    return [
        {"metric": f"{name}: off by, {seconds:g} s", "value": whole, "unit": "points", "target": "<= 1"},
        {"metric": f"{name}: off by, worst 1 s window", "value": windows, "unit": "points", "target": "<= 2"},
        {"metric": f"{name}: off by, as charged", "value": off, "unit": "points"},
        {"metric": f"{name}: device at work", "value": total, "unit": "of the time"},
    ]


def two(a, b, terms, **load):
    return [Tenant("a", f"{terms}: {a}" if terms == "weight" else f"{terms}: {a}%", share=100 * a / (a + b), **load),
            Tenant("b", f"{terms}: {b}" if terms == "weight" else f"{terms}: {b}%", share=100 * b / (a + b), **load)]


def shares(rig, graph, seconds=10):
    load = {"kernel_ms": 0.2, "kernels": 5} if graph else {"kernel_ms": 1.0}
    rows = []
    for a, b in ((50, 50), (30, 70), (10, 90), (2, 98)):
        rows += share_rows(rig, f"{a}/{b}{', graphs' if graph else ''}", two(a, b, "weight", **load), seconds, graph)
    eight = [Tenant(f"w{w}", f"weight: {w}", share=100 * w / 36, **load) for w in range(1, 9)]
    return rows + share_rows(rig, f"weights 1..8{', graphs' if graph else ''}", eight, seconds, graph)


def alone(rig, graph, seconds=10):
    suffix = ", graphs" if graph else ""
    load = {"kernel_ms": 0.2, "kernels": 5} if graph else {"kernel_ms": 1.0}
    full = rig.play([Tenant("a", **load)], seconds, graph)["a"].kernels(0, seconds)
    limit = rig.play([Tenant("a", "limit: 30%", **load)], seconds, graph)["a"]
    worst = max(abs(100 * limit.device_seconds(s, s + 1) - 30) for s in range(int(seconds)))
    by_work = statistics.median(100 * limit.kernels(s, s + 1) / (full / seconds) for s in range(int(seconds)))
    guarantee = rig.play([Tenant("a", "guarantee: 30%", **load)], seconds, graph)["a"].kernels(0, seconds)
    return [
        {"metric": f"limit 30% alone: off by, worst 1 s window{suffix}", "value": worst, "unit": "points", "target": "<= 1"},
        {"metric": f"limit 30% alone: work done, median of 1 s windows{suffix}", "value": by_work, "unit": "% of full"},
        {"metric": f"guarantee 30% alone{suffix}", "value": guarantee / full, "unit": "of no policy", "target": ">= 0.98"},
    ]


def throughput(rig, graph, seconds=3):
    suffix = ", graphs" if graph else ""
    load = {"kernel_ms": 0.2, "kernels": 5} if graph else {"kernel_ms": 1.0}
    rows = []
    for n in (2, 4, 8, 16):
        # Alone and together take turns, so that a machine that slows down slows both.
        ratios = []
        for _ in range(5):
            one = rig.play([Tenant("t0", **load)], seconds, graph)["t0"].kernels(0, seconds)
            ran = rig.play([Tenant(f"t{i}", **load) for i in range(n)], seconds, graph)
            ratios.append(sum(r.kernels(0, seconds) for r in ran.values()) / one)
        rows.append({"metric": f"throughput of {n} tenants over one{suffix}", "value": statistics.median(ratios), "unit": "ratio",
                     "target": ">= 0.97"})
    return rows


def tiny_and_long(rig, graph, seconds=10):
    tenants = [Tenant("tiny", empty=True, kernels=500, depth=8), Tenant("long", kernel_ms=5.0)]
    ran = rig.play(tenants, seconds, graph)
    charged = {n: r.device_seconds(0, seconds) for n, r in ran.items()}
    suffix = ", graphs" if graph else ""
    return [
        {"metric": f"empty launches beside 5 ms kernels: off by{suffix}", "value": abs(100 * charged["long"] / sum(charged.values()) - 50),
         "unit": "points", "target": "<= 1"},
        {"metric": f"empty launches beside 5 ms kernels: long ones' part of the time{suffix}",
         "value": 100 * ran["long"].kernels(0, seconds) * 5e-3 / seconds, "unit": "%"},
    ]


def dispatches(rig, graph, seconds=10):
    """What the server itself takes at some 10,000 kernels a second, and how long the device stands still meanwhile.

    The server's own work is its first thread's. Clients wait for every fiftieth kernel: what a wait costs is not the scheduler's.
    """
    suffix = ", graphs" if graph else ""
    tenants = [Tenant(name, kernel_ms=0.1, kernels=50, depth=4) for name in ("a", "b")]
    took = []

    def during(server, processes, origin):
        def used():
            return int(pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/schedstat").read_text().split()[0]) / 1e9

        time.sleep(max(0, (origin - time.monotonic_ns()) / 1e9))
        before, begin = used(), time.monotonic()
        time.sleep(seconds - 0.5)
        took.append((used() - before) / (time.monotonic() - begin))

    ran = rig.play(tenants, seconds, graph, during=during)
    rate = sum(r.kernels(0, seconds) for r in ran.values()) / seconds
    still = 1 - sum(r.device_seconds(0.5, seconds - 0.5) for r in ran.values()) / (seconds - 1)
    return [
        {"metric": f"kernels dispatched{suffix}", "value": rate, "unit": "1/s"},
        {"metric": f"the server's own time for 10,000 a second{suffix}", "value": 100 * took[0] * 1e4 / rate, "unit": "% of a core",
         "target": "<= 5"},
        {"metric": f"the device stands still{suffix}", "value": 100 * still, "unit": "% of the time", "target": "< 2"},
    ]


def long_kernel(rig, seconds=20):
    """The short kernels' latency is from one's end to the next one's; there always is a next.

    Alone it is what the machine takes to tell a program that its kernel is done.
    """
    tenants = [Tenant("long", "weight: 20", kernel_ms=2000.0, depth=1), Tenant("short", "weight: 80", kernel_ms=1.0)]

    def gaps(ran):
        done = [at for at, _ in ran["short"].done if at >= 0]
        return [1e3 * (b - a) for a, b in zip(done, done[1:])]

    alone = gaps(rig.play(tenants[1:], seconds / 4))
    ran = rig.play(tenants, seconds)
    latency = gaps(ran)
    charged = {n: r.device_seconds(0, seconds) for n, r in ran.items()}
    return [
        {"metric": "1 ms kernels alone: P99", "value": percentile(alone, 0.99), "unit": "ms"},
        {"metric": "1 ms kernels beside a 2 s one: P99", "value": percentile(latency, 0.99), "unit": "ms",
         "target": f"<= {MAX_SLICE_MS + 1:g}"},
        {"metric": f"1 ms kernels beside a 2 s one: off by, {seconds} s", "value": abs(100 * charged["long"] / sum(charged.values()) - 20),
         "unit": "points", "target": "<= 2"},
    ]


def priority(rig, graph, seconds=10):
    suffix = ", graphs" if graph else ""
    load = {"kernel_ms": 0.1, "kernels": 10} if graph else {"kernel_ms": 1.0}
    high = Tenant("high", "priority: 5", period_ms=10.0, **load)
    low = Tenant("low", "priority: 0", kernel_ms=5.0)
    alone_ms = percentile(rig.play([high], seconds, graph)["high"].latency_ms, 0.99)
    full = rig.play([low], seconds, graph)["low"].kernels(0, seconds)
    ran = rig.play([high, low], seconds, graph)
    beside_ms = percentile(ran["high"].latency_ms, 0.99)
    left = full * (1 - len(ran["high"].latency_ms) * 1e-3 / (seconds + WARM_UP_S))
    return [
        {"metric": f"high priority alone: P99{suffix}", "value": alone_ms, "unit": "ms"},
        {"metric": f"high priority beside low: P99{suffix}", "value": beside_ms, "unit": "ms",
         "target": f"<= {1.1 * alone_ms + MAX_SLICE_MS:.3g}"},
        {"metric": f"low's part of what is left{suffix}", "value": ran["low"].kernels(0, seconds) / left, "unit": "ratio", "target": ">= 0.85"},
    ]


def partition(rig, seconds=6):
    """Each part's work, alone and beside the other, against the whole device's."""
    tenants = [Tenant("two", "partition: 2of7"), Tenant("five", "partition: 5of7")]
    share = {"two": 2 / 7, "five": 5 / 7}
    whole = rig.play([Tenant("a")], seconds)["a"].kernels(0, seconds)
    rows = []
    both = rig.play(tenants, seconds, device="mode: partition")
    for i, tenant in enumerate(tenants):
        # The other is there, and has nothing to do.
        others = [Tenant(t.name, t.terms, empty=True, period_ms=1000.0) if t is not tenant else t for t in tenants]
        alone = rig.play(others, seconds, device="mode: partition")[tenant.name].kernels(0, seconds)
        beside = both[tenant.name].kernels(0, seconds)
        rows += [
            {"metric": f"{tenant.terms}: off from its part of the device", "value": 100 * abs(alone / whole - share[tenant.name]),
             "unit": "points", "target": "<= 3"},
            {"metric": f"{tenant.terms}: beside the other over alone", "value": beside / alone, "unit": "ratio", "target": ">= 0.95"},
        ]
    return rows


def reload(rig, seconds=4):
    """From the new file being there to the end of the first tenth of a second in which the shares are the new ones."""
    tenants = two(50, 50, "weight")
    changed = two(10, 90, "weight")
    at = []

    def during(server, processes, origin):
        time.sleep(max(0, (origin - time.monotonic_ns()) / 1e9 + seconds / 2))
        server.write_policy(rig.policy(changed))
        at.append((time.monotonic_ns() - origin) / 1e9)

    ran = rig.play(tenants, seconds, during=during)
    since = at[0]
    step = 0.02
    took = seconds
    for i in range(int(1 / step)):
        begin = since + i * step
        got = {n: r.kernels(begin, begin + 0.1) for n, r in ran.items()}
        if sum(got.values()) and got["a"] / sum(got.values()) < 0.2:
            took = 1e3 * (i * step + 0.1)
            break
    return [{"metric": "a changed policy file in force within", "value": took, "unit": "ms", "target": "<= 200"}]


def killed(rig, seconds=10):
    """Tenants die at random under kill -9 and come again; the shares of the two others, by weight, second by second."""
    tenants = [Tenant("a", "weight: 100"), Tenant("b", "weight: 300"), Tenant("victim", "weight: 100")]

    def during(server, processes, origin):
        rng = random.Random(1)
        victims = [p for t, p in processes if t.name == "victim"]
        while time.monotonic_ns() < origin + seconds * 1e9:
            time.sleep(rng.uniform(0.1, 0.6))
            victims[-1].kill()
            victims[-1].wait()
            victims.append(subprocess.Popen(rig.command(tenants[2], seconds, 0, False), env=server.environment("victim"),
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        end(victims[-1], 2)

    ran = rig.play(tenants, seconds, during=during)
    parts = [ran["a"].kernels(s, s + 1) / max(1e-9, ran["a"].kernels(s, s + 1) + ran["b"].kernels(s, s + 1)) for s in range(seconds)]
    return [{"metric": "beside a tenant killed again and again: off by, worst 1 s window", "value": max(abs(100 * p - 25) for p in parts),
             "unit": "points", "target": "<= 2"}]


def measure(build):
    rig = Rig(build)
    rows = [{"metric": "a block alone", "value": rig.block_ns / 1e3, "unit": "us"}]
    only = os.environ.get("CUPLEX_BENCH_ONLY", "").split(",") if os.environ.get("CUPLEX_BENCH_ONLY") else None
    parts = []
    for graph in (False, True):
        for part in (shares, alone, throughput, tiny_and_long, dispatches, priority):
            parts.append((f"{part.__name__}{'-graphs' if graph else ''}", lambda part=part, graph=graph: part(rig, graph)))
    parts += [(part.__name__, lambda part=part: part(rig)) for part in (long_kernel, partition, reload, killed)]
    for name, play in parts:
        if only and name not in only:
            continue
        print(f"sharing: {name} ...", file=sys.stderr, flush=True)
        rows += play()
    return rows
