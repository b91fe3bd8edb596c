"""A cuplexd of one's own, for scripts: started in a fresh folder, waited for, scraped, stopped."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})?\s+(\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Failure(Exception):
    """What was not as expected, in words."""


def parse_metrics(text):
    """[(name, {label: value}, number)] of a Prometheus text page."""
    samples = []
    for line in text.splitlines():
        found = SAMPLE.match(line)
        if found and not line.startswith("#"):
            samples.append((found[1], dict(LABEL.findall(found[2] or "")), float(found[3])))
    return samples


def end(process, seconds):
    """Ends one process of ours: asked first, then not."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`with Server(build, driver) as server:` is a running cuplexd in a folder of its own.

    `policy` is the text of a policy file without `server:`; policies/samples/demo.yaml where none is given.
    `environment` goes over that of this process.
    """

    def __init__(self, build, driver="auto", policy=None, environment=None):
        self.build = pathlib.Path(build).resolve()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cuplex-"))
        self.kept = False
        self.log = self.folder / "cuplexd.log"
        self.port = free_port()
        self.run_dir = self.folder / "run"
        self.run_dir.mkdir()
        self.policy = self.folder / "policy.yaml"
        self.write_policy((ROOT / "policies/samples/demo.yaml").read_text() if policy is None else policy)
        self.command = [str(self.build / "bin/cuplexd"), "--policy", str(self.policy), "--driver", driver]
        self.given = {**os.environ, **(environment or {})}
        self.start()

    def write_policy(self, text):
        """The policy file, in one step; the server reads it when it is told to."""
        fresh = self.policy.with_suffix(".fresh")
        fresh.write_text(f"{text}\nserver:\n  run_dir: {self.run_dir}\n  metrics: 127.0.0.1:{self.port}\n")
        fresh.replace(self.policy)

    def start(self):
        try:
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen(self.command, env=self.given, stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=log, start_new_session=True)
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def __enter__(self):
        try:
            self.wait_until_up()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        if not self.kept:
            self.stop()

    def wait_until_up(self, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Failure(f"cuplexd ended with status {self.process.returncode}; it said:\n{self.tail()}")
            try:
                facts = [labels for name, labels, _ in self.scrape() if name == "cuplex_server_info"]
                self.driver = facts[0].get("driver", "?") if facts else "?"
                return
            except OSError:
                time.sleep(0.02)
        raise Failure(f"cuplexd did not answer on its metrics port within {seconds} s; it said:\n{self.tail()}")

    def scrape(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as page:
            return parse_metrics(page.read().decode())

    def tail(self, lines=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self):
        end(self.process, 10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def control(self, *words):
        """cuplexctl, run to its end."""
        return subprocess.run([str(self.build / "bin/cuplexctl"), *words, "--control",
                               f"ipc://{self.run_dir}/control.sock"], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)

    def status(self):
        """What `cuplexctl status --json` says."""
        ran = self.control("status", "--json")
        if ran.returncode:
            raise Failure(ran.stderr.strip())
        return json.loads(ran.stdout)

    def await_idle(self, seconds):
        """Waits until no tenant has a session or memory; what is left after that long, "" for nothing."""
        deadline = time.monotonic() + seconds
        while True:
            left = [f"{tenant['name']}: {len(tenant['sessions'])} sessions, {sum(d['memory_used'] for d in tenant['devices'])} bytes"
                    for tenant in self.status()["tenants"]
                    if tenant["sessions"] or any(device["memory_used"] for device in tenant["devices"])]
            if not left or time.monotonic() > deadline:
                return "; ".join(left)
            time.sleep(0.02)

    def attach(self, tenant):
        """{variable: value} that make a program this tenant's: our library first, and the tenant's socket."""
        return {"LD_LIBRARY_PATH": str(self.build / "lib"), "CUPLEX_SOCKET": str(self.run_dir / f"{tenant}.sock")}

    def environment(self, tenant):
        return {**os.environ, **self.attach(tenant), "PYTHONDONTWRITEBYTECODE": "1"}
