"""A cuplexd of one's own, for scripts: started in a fresh folder, waited for, scraped, stopped."""
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
    """`with Server(build, driver) as server:` is a running cuplexd under policies/samples/demo.yaml, in a folder of its own."""

    def __init__(self, build, driver="auto"):
        self.build = pathlib.Path(build).resolve()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cuplex-"))
        self.kept = False
        self.log = self.folder / "cuplexd.log"
        self.port = free_port()
        self.run_dir = self.folder / "run"
        self.run_dir.mkdir()
        policy = self.folder / "policy.yaml"
        policy.write_text((ROOT / "policies/samples/demo.yaml").read_text() +
                          f"server:\n  run_dir: {self.run_dir}\n  metrics: 127.0.0.1:{self.port}\n")
        command = [str(self.build / "bin/cuplexd"), "--policy", str(policy), "--driver", driver]
        try:
            with open(self.log, "wb") as log:
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                start_new_session=True)
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
                facts = [labels for name, labels, _ in self.scrape() if name == "cuplex_build_info"]
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

    def attach(self, tenant):
        """{variable: value} that make a program this tenant's: our library first, and the tenant's socket."""
        return {"LD_LIBRARY_PATH": str(self.build / "lib"), "CUPLEX_SOCKET": str(self.run_dir / f"{tenant}.sock")}

    def environment(self, tenant):
        return {**os.environ, **self.attach(tenant), "PYTHONDONTWRITEBYTECODE": "1"}
