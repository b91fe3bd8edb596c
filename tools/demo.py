#!/usr/bin/env python3
"""The main job, before your eyes: one server, three tenants at once on one device.

    demo.py --build FOLDER [--driver auto|PATH] [--seconds N] [--keep]

Two tenants compute, over and over, and check every result on the CPU. The third asks for more memory than its tenant
may have, is told so with CUDA's own code, frees and goes on. With a terminal a table shows them live; without one
only the summary is printed. Ends with "demo: ok" and exit status 0, or with what was not as expected and status 1.
Starts processes of its own and ends only those.
"""
import argparse
import dataclasses
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

from serving import ROOT, Failure, Server, end

OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY (2)"


@dataclasses.dataclass
class Row:
    """What one scrape says about one tenant, summed over devices."""
    sessions: float = 0
    used: float = 0
    limit: float = 0
    device_seconds: float = 0
    launches: float = 0
    out_of_memory: float = 0


SERIES = {
    "cuplex_tenant_sessions": "sessions",
    "cuplex_tenant_memory_used_bytes": "used",
    "cuplex_tenant_memory_limit_bytes": "limit",
    "cuplex_tenant_device_seconds_total": "device_seconds",
    "cuplex_tenant_launches_total": "launches",
    "cuplex_tenant_out_of_memory_total": "out_of_memory",
}


def rows(samples):
    table = {}
    for name, labels, number in samples:
        if name in SERIES and "tenant" in labels:
            row = table.setdefault(labels["tenant"], Row())
            setattr(row, SERIES[name], getattr(row, SERIES[name]) + number)
    return table



class Tenant(threading.Thread):
    """Runs one tenant's programs, one after the other, until told to stop. Each program checks its own results."""

    def __init__(self, name, does, commands, environment):
        super().__init__(name=name, daemon=True)
        self.does, self.commands, self.environment = does, commands, environment
        self.runs, self.failure, self.told, self.last = 0, None, 0, ""
        self.halt = threading.Event()
        self.process = None

    def run(self):
        try:
            while not self.halt.is_set():
                self.once(self.commands[self.runs % len(self.commands)])
        except (Failure, OSError) as failure:
            self.failure = str(failure)

    def once(self, command, seconds=60):
        program = pathlib.Path(command[-1] if command[0] == sys.executable else command[0]).stem
        self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        try:
            said, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            end(self.process, 1)
            raise Failure(f"{program} was not done after {seconds} s") from None
        last = (said.strip().splitlines() or [""])[-1]
        if self.process.returncode or ": ok" not in last:
            raise Failure(f"{program} ended with status {self.process.returncode} and said:\n{said.strip()}")
        self.runs += 1
        self.told += said.count(OUT_OF_MEMORY)
        self.last = last



def mib(number):
    return f"{number / (1 << 20):.0f}"


def table(now, before, seconds, tenants):
    lines = [f"{'tenant':<12} {'sessions':>8} {'MiB used/limit':>16} {'device s':>9} {'launches/s':>11} {'runs checked':>13}  doing"]
    for tenant in tenants:
        row = now.get(tenant.name, Row())
        rate = max(0.0, row.launches - before.get(tenant.name, Row()).launches) / seconds if seconds else 0.0
        lines.append(f"{tenant.name:<12} {row.sessions:>8.0f} {mib(row.used) + ' / ' + mib(row.limit):>16} "
                     f"{row.device_seconds:>9.2f} {rate:>11.0f} {tenant.runs:>13}  {tenant.does}")
    return lines


class Watch:
    """Scrapes while the tenants run, shows it where there is a terminal, and keeps what must hold at all times."""

    def __init__(self, server, tenants, live):
        self.server, self.tenants, self.live = server, tenants, live
        self.shown = self.scrapes = 0
        self.together = False  # all tenants had a session in one and the same scrape
        self.peak = {}
        self.over = []
        self.began = self.then = time.monotonic()
        self.before = {}

    def until(self, deadline):
        first = None
        while (now := time.monotonic()) < deadline and not any(t.failure for t in self.tenants):
            scraped = rows(self.server.scrape())
            self.scrapes += 1
            self.together |= all(scraped.get(t.name, Row()).sessions >= 1 for t in self.tenants)
            for name, row in scraped.items():
                self.peak[name] = max(self.peak.get(name, 0), row.used)
                if row.used > row.limit:
                    self.over.append(f"{name} had {row.used:.0f} bytes of {row.limit:.0f}")
            first = first or (now, scraped)
            if self.live:
                self.show(table(scraped, self.before, now - self.then, self.tenants), now - self.began)
            self.before, self.then = scraped, now
            time.sleep(min(0.5 if self.live else 0.1, max(0.0, deadline - time.monotonic())))

    def show(self, lines, seconds):
        if self.shown:
            sys.stdout.write(f"\x1b[{self.shown}F")
        lines = [f"{seconds:5.1f} s on {self.server.driver}"] + lines
        width = shutil.get_terminal_size().columns
        sys.stdout.write("".join(f"\x1b[2K{line[:width - 1]}\n" for line in lines))
        sys.stdout.flush()
        self.shown = len(lines)



def example(build, name, *arguments):
    return [str(build / "bin" / name), *arguments]


def run(options, server):
    build = server.build
    greedy = [sys.executable or "python3", str(ROOT / "tools/over_limit.py")]
    tenants = [
        Tenant("render", "Mandelbrot set, n-body",
               [example(build, "mandelbrot_driver", "--output", str(build / "mandelbrot.png")), example(build, "nbody_driver")],
               server.environment("render")),
        Tenant("train", "matrix products, reductions", [example(build, "matrix_multiply_driver"), example(build, "reduction_driver")],
               server.environment("train")),
        Tenant("greedy", "asks for too much, goes on", [greedy],
               server.environment("greedy")),
    ]
    watch = Watch(server, tenants, live=sys.stdout.isatty())
    try:
        for tenant in tenants:
            tenant.start()
        watch.until(time.monotonic() + options.seconds)
        for tenant in tenants:
            tenant.halt.set()
        deadline = time.monotonic() + 60
        while any(t.is_alive() for t in tenants) and time.monotonic() < deadline:
            watch.until(min(time.monotonic() + 0.5, deadline))
            for tenant in tenants:
                tenant.join(0.01)
    finally:
        for tenant in tenants:
            tenant.halt.set()
            if tenant.process:
                end(tenant.process, 2)
    summarize(server, tenants, watch)


def settled(server, tenants, seconds):
    """The last scrape, once the tenants' sessions are gone or `seconds` have passed."""
    deadline = time.monotonic() + seconds
    while True:
        last = rows(server.scrape())
        if all(last.get(t.name, Row()).sessions == 0 for t in tenants) or time.monotonic() > deadline:
            return last
        time.sleep(0.05)


def summarize(server, tenants, watch, seconds=3):
    last = settled(server, tenants, seconds)
    print(f"one device, {len(tenants)} tenants at once, on {server.driver}; {watch.scrapes} scrapes of "
          f"http://127.0.0.1:{server.port}/metrics")
    for tenant in tenants:
        row = last.get(tenant.name, Row())
        print(f"  {tenant.name:<8} {tenant.runs:>4} runs checked, {row.launches:.0f} launches, {row.device_seconds:.2f} s of device time, "
              f"at most {mib(watch.peak.get(tenant.name, 0))} of {mib(row.limit)} MiB"
              + (f", told {OUT_OF_MEMORY} {tenant.told} times and went on" if tenant.told else ""))
    wrong = [f"{t.name}: {t.failure}" for t in tenants if t.failure]
    wrong += [f"{t.name} finished no run" for t in tenants if not t.runs and not t.failure]
    wrong += watch.over
    if not watch.together:
        wrong.append("no scrape saw all tenants at once")
    greedy = next(t for t in tenants if t.name == "greedy")
    if not greedy.told:
        wrong.append(f"greedy was never told {OUT_OF_MEMORY}")
    for tenant in tenants:
        row = last.get(tenant.name, Row())
        if row.sessions or row.used:
            wrong.append(f"{tenant.name} still has {row.sessions:.0f} sessions and {row.used:.0f} bytes after its programs ended")
        if tenant is not greedy and not (row.launches and row.device_seconds):
            wrong.append(f"the metrics know no launches or no device time of {tenant.name}")
    if last.get("greedy", Row()).out_of_memory < greedy.told:
        wrong.append(f"the metrics count {last.get('greedy', Row()).out_of_memory:.0f} out-of-memory answers, greedy saw {greedy.told}")
    if wrong:
        raise Failure("\n".join(wrong))
    print("demo: ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="where the tree was built")
    parser.add_argument("--driver", default="auto", help="as cuplexd takes it")
    parser.add_argument("--seconds", type=float, default=8, help="how long the tenants go on")
    parser.add_argument("--keep", action="store_true", help="leave the server running and say how to use it")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with Server(options.build, options.driver) as server:
            run(options, server)
            server.kept = options.keep
    except (Failure, OSError) as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130
    if server.kept:
        attach = " ".join(f"{name}={value}" for name, value in server.attach("train").items())
        print(f"""
The server goes on as process {server.process.pid}; its log is {server.log}.
  be the tenant "train":   {attach} your-program
  for instance:            {attach} {server.build}/bin/vector_add_driver
  read its metrics:        curl http://127.0.0.1:{server.port}/metrics
  end it:                  kill {server.process.pid} && rm -r {server.folder}""")
    return 0


if __name__ == "__main__":
    sys.exit(main())
