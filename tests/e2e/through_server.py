#!/usr/bin/env python3
"""Runs a program as a tenant of a server that it has for itself, and ends as the program does.

    through_server.py BUILD LIMIT_MIB COMMAND...

The server runs softcuda, with four times the tenant's memory. There are two more tenants, `other` with the same limit and
`stranger`, which nobody is. The program finds the client library by LD_LIBRARY_PATH and its tenant by CUPLEX_SOCKET; for
tests that look further there are CUPLEX_TEST_RUN_DIR, CUPLEX_TEST_SERVER_PID and CUPLEX_TEST_CLIENT, the client library's
path, which also takes the place of the word @client@ in COMMAND. Afterwards the server must still answer, hold nothing,
and stop when told. Exit status 77 where the build folder lacks a part.
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from serving import Failure, Server  # noqa: E402

NOBODY = 4294967000  # a user id that no process has


def policy(mib):
    return f"""version: 1
tenants:
  - {{name: tenant, memory: {mib}MiB}}
  - {{name: other, memory: {mib}MiB}}
  - {{name: stranger, memory: {mib}MiB, match: {{uid: {NOBODY}}}}}
"""


def main(arguments):
    build, mib, command = pathlib.Path(arguments[0]).resolve(), int(arguments[1]), arguments[2:]
    softcuda, client = build / "lib/libcuda-soft.so", build / "lib/libcuda.so.1"
    for part in [softcuda, client, build / "bin/cuplexd", build / "bin/cuplexctl"]:
        if not part.exists():
            print(f"through_server: skipped, since there is no {part.relative_to(build)}")
            return 77
    with Server(build, str(softcuda), policy(mib), {"SOFTCUDA_MEMORY": f"{4 * mib}MiB"}) as server:
        given = {**server.environment("tenant"), "CUPLEX_TEST_RUN_DIR": str(server.run_dir),
                 "CUPLEX_TEST_SERVER_PID": str(server.process.pid), "CUPLEX_TEST_CLIENT": str(client)}
        ran = subprocess.run([str(client) if word == "@client@" else word for word in command], env=given,
                             stdin=subprocess.DEVNULL)
        failures = []
        try:
            left = server.await_idle(5)
            failures += [f"the server still holds {left}"] if left else []
        except Failure as failure:
            failures.append(f"the server does not answer: {failure}")
        server.process.terminate()
        try:
            status = server.process.wait(10)
            failures += [f"the server ended with status {status}"] if status else []
        except subprocess.TimeoutExpired:
            failures.append("the server did not stop within 10 s of SIGTERM")
        if failures or ran.returncode:
            print(f"the server's log ends with:\n{server.tail(40)}")
    for failure in failures:
        print(f"through_server: {failure}")
    return ran.returncode or (1 if failures else 0)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        print(f"through_server: {failure}")
        sys.exit(1)
