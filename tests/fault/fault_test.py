#!/usr/bin/env python3
"""Real processes that race, die, fork and lie, around a real server; it and the others must not care.

    fault_test.py BUILD [CASE...]     as unittest takes cases: Limits.test_..., Deaths

Exit status 77, which CTest counts as skipped, where the build folder lacks a part.
"""
import concurrent.futures
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from serving import Server, end  # noqa: E402

BUILD = None
MIB = 1 << 20
OUT_OF_MEMORY, NOT_PERMITTED, ILLEGAL_ADDRESS, INVALID_VALUE = 2, 800, 700, 1
SECONDS = 60  # until a worker that says nothing counts as hanging
LONG = 2_000_000_000  # turns of a kernel: minutes

POLICY = """version: 1
tenants:
  - {name: a, memory: 1024MiB}
  - {name: b, memory: 512MiB}
  - {name: small, memory: 64MiB}
"""


class Worker:
    """tests/fault/worker.py as a process of ours."""

    def __init__(self, server, tenant, socket_path=None):
        given = server.environment(tenant)
        if socket_path:
            given["CUPLEX_SOCKET"] = str(socket_path)
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen([sys.executable, str(ROOT / "tests/fault/worker.py"),
                                         str(ROOT / "tests/conformance/kernels.ptx")], env=given, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, bufsize=1)
        self.reader = concurrent.futures.ThreadPoolExecutor(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.stderr.closed:
            return
        end(self.process, 2)
        self.process.stdin.close()
        self.reader.shutdown()
        self.process.stdout.close()
        self.stderr.close()

    def say(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")

    def hear(self, seconds=SECONDS):
        line = self.reader.submit(self.process.stdout.readline)
        try:
            return line.result(seconds).strip()
        except concurrent.futures.TimeoutError:
            self.process.kill()
            raise AssertionError(f"the worker said nothing for {seconds} s") from None

    def ask(self, *words, seconds=SECONDS):
        self.say(*words)
        return self.hear(seconds)

    def numbers(self, *words):
        return [int(word) for word in self.ask(*words).split()]

    def errors(self):
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace")


class Case(unittest.TestCase):
    policy = POLICY
    memory = "3GiB"

    def setUp(self):
        self.server = Server(BUILD, str(BUILD / "lib/libcuda-soft.so"), self.policy, {"SOFTCUDA_MEMORY": self.memory})
        self.addCleanup(self.server.stop)
        self.workers, self.endless = [], False
        self.server.wait_until_up()

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            print(f"the server's log of {self.id()} ends with:\n{getattr(self, 'tail', '')}")

    def tearDown(self):
        for worker in self.workers:
            worker.__exit__()
        self.tail = self.server.tail(30)
        self.assertIsNone(self.server.process.poll(), "the server has ended")
        if not self.endless:
            self.assertEqual(self.server.await_idle(3), "", "what a dead client had is not given back")

    def worker(self, tenant, **more):
        worker = Worker(self.server, tenant, **more)
        self.workers.append(worker)
        self.assertEqual(worker.ask("init"), "0", worker.errors())
        return worker

    def used(self, tenant):
        found = next(t for t in self.server.status()["tenants"] if t["name"] == tenant)
        return sum(device["memory_used"] for device in found["devices"])

    def await_used(self, tenant, expected, seconds=1.0):
        """Waits until the tenant uses that many bytes; fails where it takes longer."""
        deadline = time.monotonic() + seconds
        while (used := self.used(tenant)) != expected:
            if time.monotonic() > deadline:
                self.fail(f"{tenant} uses {used} bytes {seconds} s later, {expected} were expected")
            time.sleep(0.01)


class Limits(Case):
    def test_two_processes_race_for_one_limit(self):
        self.race("a", 600 * MIB, 4)  # of 1024
        self.race("small", 38 * MIB, 100)  # of 64

    def race(self, tenant, size, rounds):
        with tempfile.NamedTemporaryFile() as counters:
            counters.truncate(16)
            workers = [self.worker(tenant), self.worker(tenant)]
            for me, worker in enumerate(workers):
                worker.say("race", counters.name, me, 1, rounds, size)
            codes = [[int(code) for code in worker.hear().split()] for worker in workers]
        self.assertEqual([sorted(pair) for pair in zip(*codes)], [[0, OUT_OF_MEMORY]] * rounds)
        self.await_used(tenant, 0)
        for worker in workers:
            worker.__exit__()

    def test_another_tenants_memory_is_not_ones_own(self):
        a, b = self.worker("a"), self.worker("b")
        self.assertEqual(a.numbers("info"), [0, 1024 * MIB, 1024 * MIB])
        self.assertEqual(b.numbers("info"), [0, 512 * MIB, 512 * MIB])
        self.assertEqual(a.numbers("alloc", 1024 * MIB)[0], 0)
        self.assertEqual(b.numbers("info"), [0, 512 * MIB, 512 * MIB])
        self.assertEqual(b.numbers("alloc", 513 * MIB)[0], OUT_OF_MEMORY)
        self.assertEqual(b.numbers("alloc", 512 * MIB)[0], 0)
        self.assertEqual(b.ask("verify", 0), str(OUT_OF_MEMORY))

    def test_what_one_process_leaves_the_other_gets(self):
        a, c = self.worker("a"), self.worker("a")
        self.assertEqual(c.numbers("alloc", 300 * MIB)[0], 0)
        self.assertEqual(a.numbers("alloc", 400 * MIB)[0], 0)
        self.assertEqual(c.numbers("info")[1], 324 * MIB)
        a.__exit__()
        self.await_used("a", 300 * MIB)
        self.assertEqual(c.numbers("info")[1], 724 * MIB)

    def test_pinned_memory_has_a_limit_of_its_own(self):
        a, c = self.worker("a"), self.worker("a")
        code, address = a.numbers("host", 600 * MIB)
        self.assertEqual(code, 0)
        self.assertEqual(c.numbers("host", 600 * MIB)[0], OUT_OF_MEMORY)
        self.assertEqual(c.numbers("alloc", 1024 * MIB)[0], 0)
        self.assertEqual(a.ask("unhost", address), "0")
        self.assertEqual(c.numbers("host", 600 * MIB)[0], 0)
        c.__exit__()
        self.await_used("a", 0)
        self.assertEqual(a.numbers("host", 1000 * MIB)[0], 0)

    def test_the_status_says_who_has_what(self):
        a, b = self.worker("a"), self.worker("b")
        self.assertEqual(a.numbers("alloc", 100 * MIB)[0], 0)
        self.assertRegex(b.ask("verify", 0.2), r"ok [1-9]\d*")
        tenants = {tenant["name"]: tenant for tenant in self.server.status()["tenants"]}
        self.assertEqual(set(tenants), {"a", "b", "small"})
        self.assertEqual([session["pid"] for session in tenants["a"]["sessions"]], [a.process.pid])
        self.assertEqual(tenants["a"]["sessions"][0]["memory_used"], 100 * MIB)
        self.assertEqual(tenants["a"]["devices"][0]["memory_used"], 100 * MIB)
        self.assertEqual(tenants["a"]["devices"][0]["memory_limit"], 1024 * MIB)
        self.assertGreaterEqual(tenants["b"]["devices"][0]["launches"], 3)
        self.assertGreater(tenants["b"]["devices"][0]["device_ns"], 0)
        self.assertEqual(tenants["a"]["devices"][0]["launches"], 0)
        self.assertEqual(tenants["small"]["sessions"], [])
        table = self.server.control("status").stdout
        self.assertRegex(table, rf"a +{a.process.pid} +100\.0 ")

    def test_many_clients_at_once(self):
        workers = [Worker(self.server, "ab"[i % 2]) for i in range(20)]
        self.workers += workers
        for worker in workers:
            worker.say("init")
            worker.say("verify", 0.1)
        for worker in workers:
            self.assertEqual(worker.hear(), "0", worker.errors())
            self.assertRegex(worker.hear(), r"ok [1-9]\d*")

    def test_fresh_memory_holds_nothing_of_another_tenant(self):
        a = self.worker("a")
        code, address = a.numbers("alloc", 256 * MIB)
        self.assertEqual((code, a.ask("fill", address, 0xa5, 256 * MIB)), (0, "0"))
        a.__exit__()
        self.await_used("a", 0)
        b = self.worker("b")
        code, address = b.numbers("alloc", 500 * MIB)
        self.assertEqual(code, 0)
        for at in range(0, 500 * MIB, 50 * MIB):
            self.assertEqual(b.ask("holds", address + at, 0, MIB), "0 yes")


class Deaths(Case):
    def test_kill_9_at_random_moments(self):
        seed = random.SystemRandom().randrange(1 << 30)
        chance = random.Random(seed)
        others = [self.worker("a"), self.worker("b")]
        for other in others:
            other.say("verify", 12)
        until = time.monotonic() + 11
        kills = 0
        while time.monotonic() < until and kills < 40:
            victim = Worker(self.server, "a")
            try:
                if chance.random() < 0.8:
                    victim.say("init")
                    self.assertEqual(victim.hear(), "0", victim.errors())
                    victim.say("busy")
                    self.assertEqual(victim.hear(), "ready")
                else:
                    victim.say("init")
                time.sleep(chance.random() * 0.03)
                victim.process.kill()
                victim.process.wait()
            finally:
                victim.__exit__()
            kills += 1
            deadline = time.monotonic() + 1
            while (sessions := self.sessions("a")) != 1 or self.used("a") > 4 * MIB:
                if time.monotonic() > deadline:
                    self.fail(f"seed {seed}: 1 s after kill -9 {sessions} sessions and {self.used('a')} bytes are left")
                time.sleep(0.01)
        for other in others:
            self.assertRegex(other.hear(), r"ok [1-9]\d*", f"seed {seed}")
        self.assertGreaterEqual(kills, 5)

    def sessions(self, tenant):
        return len(next(t for t in self.server.status()["tenants"] if t["name"] == tenant)["sessions"])

    def test_a_client_dies_in_the_middle_of_its_kernel(self):
        other, victim = self.worker("b"), self.worker("a")
        self.assertEqual(victim.numbers("alloc", 512 * MIB)[0], 0)
        self.assertEqual(victim.ask("spin", LONG), "0")
        victim.process.kill()
        victim.process.wait()
        self.assertRegex(other.ask("verify", 0.5), r"ok [1-9]\d*")
        # The kernel would go on for minutes; it is ended with its client.
        self.await_used("a", 0, 1)
        again = self.worker("a")
        self.assertEqual(again.numbers("alloc", 1024 * MIB)[0], 0)

    def kill(self, victim):
        victim.process.kill()
        victim.process.wait()

    def await_gone(self, tenant, seconds):
        """Waits until the tenant has neither a session, which a job still running would keep, nor memory."""
        deadline = time.monotonic() + seconds
        while self.sessions(tenant) or self.used(tenant):
            if time.monotonic() > deadline:
                self.fail(f"{tenant} has {self.sessions(tenant)} sessions and {self.used(tenant)} bytes {seconds} s later")
            time.sleep(0.01)

    def test_a_client_dies_in_the_middle_of_its_graph(self):
        other, victim = self.worker("b"), self.worker("a")
        self.assertEqual(victim.numbers("alloc", 512 * MIB)[0], 0)
        # Seconds of work in 3000 nodes, of which some are with the driver and most are not.
        self.assertEqual(victim.ask("graph", 1000, 1_000_000), "0")
        self.kill(victim)
        self.await_gone("a", 10)
        self.assertRegex(other.ask("verify", 0.3), r"ok [1-9]\d*")
        # In the middle of a node that would go on for minutes.
        victim = self.worker("a")
        self.assertEqual(victim.numbers("alloc", 512 * MIB)[0], 0)
        self.assertEqual(victim.ask("graph", 3, LONG), "0")
        self.kill(victim)
        self.await_gone("a", 10)
        self.assertRegex(other.ask("verify", 0.3), r"ok [1-9]\d*")
        self.assertEqual(self.worker("a").numbers("alloc", 1000 * MIB)[0], 0)

    def test_a_client_dies_while_it_captures(self):
        other, victim = self.worker("b"), self.worker("a")
        self.assertEqual(victim.numbers("alloc", 512 * MIB)[0], 0)
        self.assertEqual(victim.ask("capture", 5000), "0")
        self.kill(victim)
        self.await_gone("a", 10)
        # Or while it describes what it has captured.
        chance = random.Random(1)
        for _ in range(4):
            victim = self.worker("a")
            victim.say("graph", 20_000, 1)
            time.sleep(chance.random() * 0.4)  # whatever it is at
            self.kill(victim)
            self.await_gone("a", 10)
        self.assertRegex(other.ask("verify", 0.2), r"ok [1-9]\d*")

    def test_a_client_dies_while_the_server_links_for_it(self):
        other, beside = self.worker("b"), self.worker("small")
        seed = random.SystemRandom().randrange(1 << 30)
        chance = random.Random(seed)
        for _ in range(6):
            victim = self.worker("a")
            self.assertEqual(victim.numbers("alloc", 512 * MIB)[0], 0)
            self.assertEqual(victim.ask("link", 10_000), "ready")
            time.sleep(chance.random() * 0.5)  # whatever it is at: sending, linking, fetching
            self.kill(victim)
            # A link that has begun is not broken off.
            self.await_gone("a", 10)
        self.assertRegex(other.ask("verify", 0.2), r"ok [1-9]\d*", f"seed {seed}")
        self.assertRegex(beside.ask("verify", 0.2), r"ok [1-9]\d*", f"seed {seed}")
        self.assertEqual(self.worker("a").numbers("alloc", 1000 * MIB)[0], 0)

    def test_a_long_kernel_holds_up_nobody_else(self):
        a, b = self.worker("a"), self.worker("b")
        self.assertEqual(a.ask("spin", LONG), "0")
        a.say("sync")
        answer = a.reader.submit(a.process.stdout.readline)
        self.assertRegex(b.ask("verify", 0.5), r"ok [1-9]\d*")
        self.assertFalse(answer.done(), "the kernel was over too soon for this test to say anything")
        a.process.kill()
        self.assertEqual(answer.result(10), "")
        self.assertRegex(b.ask("verify", 0.2), r"ok [1-9]\d*")
        # That its memory comes back is looked at above.
        self.endless = True

    def test_a_forked_child_is_no_client(self):
        parent = self.worker("a")
        self.assertRegex(parent.ask("verify", 0), r"ok \d+")
        child, status, after = parent.numbers("fork")
        self.assertNotIn(child, (0, OUT_OF_MEMORY))
        self.assertEqual((status, after), (0, 0))
        self.assertRegex(parent.ask("verify", 0.2), r"ok \d+")

    def test_a_fault_stays_with_its_client(self):
        a, b, beside = self.worker("a"), self.worker("b"), self.worker("a")
        b.say("verify", 2)
        code, address = b_address = self.worker("b").numbers("alloc", MIB)
        self.assertEqual(code, 0, b_address)
        self.assertEqual(a.ask("wild", 0xdead0000), str(ILLEGAL_ADDRESS))
        self.assertEqual(a.numbers("alloc", 4096)[0], ILLEGAL_ADDRESS)
        self.assertRegex(b.hear(), r"ok [1-9]\d*")
        self.assertRegex(beside.ask("verify", 0.2), r"ok [1-9]\d*")
        fresh = self.worker("a")
        self.assertRegex(fresh.ask("verify", 0.2), r"ok [1-9]\d*")

    def test_addresses_of_another_tenant_are_no_addresses(self):
        a, b = self.worker("a"), self.worker("b")
        code, address = b.numbers("alloc", 64 * MIB)
        self.assertEqual((code, b.ask("fill", address, 0x5a, 64 * MIB)), (0, "0"))
        for at in range(address, address + 64 * MIB, 4 * MIB):
            self.assertEqual(a.ask("read", at, 4096), str(INVALID_VALUE))
            self.assertEqual(a.ask("fill", at, 0, 4096), str(INVALID_VALUE))
        self.assertEqual(b.ask("holds", address, 0x5a, 64 * MIB), "0 yes")
        self.assertRegex(a.ask("verify", 0), r"ok \d+")


class Servers(Case):
    def test_a_dead_server_is_an_error_and_a_new_one_starts(self):
        clients = [self.worker("a"), self.worker("b")]
        self.assertEqual(clients[0].ask("spin", LONG), "0")
        for client in clients:
            client.say("sync" if client is clients[0] else "verify 60")
        time.sleep(0.2)  # so that both are in the middle of something; either way they must hear of it
        self.server.process.kill()
        killed = time.monotonic()
        self.server.process.wait()
        for client in clients:
            said = client.hear(10)
            self.assertNotIn(said.split()[0], ("0", "ok", "wrong"))
            self.assertLess(time.monotonic() - killed, 2.5)
            self.assertNotEqual(client.numbers("alloc", 4096)[0], 0)
            self.assertIn("server hung up", client.errors())
        self.server.start()
        self.server.wait_until_up()
        self.assertRegex(self.worker("a").ask("verify", 0.1), r"ok \d+")

    def test_sigterm_leaves_nothing(self):
        spinning, idle = self.worker("a"), self.worker("b")
        self.assertEqual(spinning.ask("spin", LONG), "0")
        asked = time.monotonic()
        self.server.process.send_signal(signal.SIGTERM)
        status = self.server.process.wait(30)
        self.assertEqual(status, 0)
        self.assertLess(time.monotonic() - asked, 20)
        self.assertEqual([path.name for path in self.server.run_dir.iterdir()], [])
        self.assertNotEqual(idle.numbers("alloc", 4096)[0], 0)
        self.server.start()
        self.server.wait_until_up()

    def test_stop_by_the_operator(self):
        idle = self.worker("b")
        ran = self.server.control("stop", "--seconds", "1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.server.process.wait(15), 0)
        self.assertNotEqual(idle.numbers("alloc", 4096)[0], 0)
        self.assertEqual(self.server.control("status", "--timeout", "0.2").returncode, 1)
        self.server.start()
        self.server.wait_until_up()

    def test_policies_are_taken_whole_or_not_at_all(self):
        a, b = self.worker("a"), self.worker("b")
        b.say("verify", 3)
        for bad, expected in [("version: 1\ntenants:\n  - {name: a, memory: 1024MiB, wieght: 3}\n", "wieght"),
                              ("version: 1\ntenants:\n  - {name: a, memory: -5MiB}\n", "memory"),
                              ("version: 1\ntenants: [", "policy.yaml:"),
                              ("version: 1\ntenants:\n  - {name: a, memory: 1GiB}\n  - {name: a, memory: 1GiB}\n", "twice")]:
            self.server.write_policy(bad)
            ran = self.server.control("reload")
            self.assertEqual(ran.returncode, 1, bad)
            self.assertIn(expected, ran.stderr)
            self.assertRegex(ran.stderr, r"policy\.yaml:\d+:\d+: ")
            self.assertEqual(a.numbers("info"), [0, 1024 * MIB, 1024 * MIB])
        self.server.write_policy(POLICY.replace("1024MiB", "256MiB"))
        ran = self.server.control("reload")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(a.numbers("alloc", 257 * MIB)[0], OUT_OF_MEMORY)
        self.assertEqual(a.numbers("alloc", 256 * MIB)[0], 0)
        # Below what is in use: nothing is taken away, and nothing more is given.
        self.server.write_policy(POLICY.replace("1024MiB", "128MiB"))
        self.assertEqual(self.server.control("reload").returncode, 0)
        self.assertEqual(a.numbers("alloc", 4096)[0], OUT_OF_MEMORY)
        self.server.write_policy(POLICY + "  - {name: c, memory: 64MiB}\n")
        self.assertEqual(self.server.control("reload").returncode, 0)
        self.assertRegex(self.worker("c").ask("verify", 0.1), r"ok \d+")
        self.assertRegex(b.hear(), r"ok [1-9]\d*")


class Strangers(Case):
    policy = POLICY + "  - {name: stranger, memory: 64MiB, match: {uid: 4294967000}}\n"

    def refused(self, path):
        worker = Worker(self.server, "a", path)
        self.workers.append(worker)
        self.assertEqual(worker.ask("init"), str(NOT_PERMITTED), worker.errors())
        return worker.errors()

    def test_an_unknown_user_is_refused_with_a_sentence(self):
        for name in ("stranger.sock", "cuplex.sock"):
            self.assertIn(str(os.getuid()), self.refused(self.server.run_dir / name))
        self.assertRegex(self.worker("a").ask("verify", 0), r"ok \d+")

    def test_connect_and_drop(self):
        def numbers():
            at = pathlib.Path("/proc", str(self.server.process.pid))
            return [len(list((at / what).iterdir())) for what in ("fd", "task")]

        path = str(self.server.run_dir / "a.sock")
        def connect():
            client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            client.connect(path)
            return client

        for _ in range(10):  # whatever the server makes once
            connect().close()
        self.assertRegex(self.worker("a").ask("verify", 0), r"ok \d+")
        self.settle(lambda: len(self.server.status()["tenants"][0]["sessions"]) <= 1)
        before = numbers()
        for i in range(500):
            client = connect()
            if i % 3 == 1:
                client.send(b"junk" * (1 + i))
            client.close()
        self.settle(lambda: all(number <= most for number, most in zip(numbers(), before)))
        descriptors, threads = numbers()
        self.assertLessEqual(descriptors, before[0])
        self.assertLessEqual(threads, before[1])
        # Many that say nothing at once are in nobody's way.
        silent = [connect() for _ in range(100)]
        self.assertRegex(self.worker("b").ask("verify", 0), r"ok \d+")
        for client in silent:
            client.close()

    def settle(self, done, seconds=5):
        deadline = time.monotonic() + seconds
        while not done() and time.monotonic() < deadline:
            time.sleep(0.02)


def main(arguments):
    global BUILD
    BUILD = pathlib.Path(arguments[1]).resolve()
    for part in ["lib/libcuda-soft.so", "lib/libcuda.so.1", "bin/cuplexd", "bin/cuplexctl"]:
        if not (BUILD / part).exists():
            print(f"fault_test: skipped, since there is no {part}")
            return 77
    unittest.main(argv=[arguments[0], "-v", *arguments[2:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
