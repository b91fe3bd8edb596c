#!/usr/bin/env python3
"""Records the frames that real programs submit, as seeds for frames_fuzz and for the server's decode_fuzz.

    record_frames.py BUILD [FRAMES_FOLDER DECODE_FOLDER]

Runs the conformance bodies and an example through a server, opens each client's segment beside it (a memfd of this user's
own process, by /proc), and afterwards reads what its ring still holds: at most the ring's length of the last frames. Writes
one file for each call, with up to SHAPES of its frames that differ in length, and one file with the first frames of a
program in their order. In DECODE_FOLDER each frame is led by its length and asks that the server settles behind it.
"""
import mmap
import os
import pathlib
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from serving import Failure, Server  # noqa: E402

SHAPES = 4
LONGEST = 600  # bytes of a frame that is kept
SETTLE = 0x4000  # in decode_fuzz
HEADER = struct.Struct("<IHBBII")  # bytes op version flags slot context
RING_BYTES = 1 << 20


def segments(pid):
    """{descriptor here} of the client's shared segments."""
    found = []
    folder = pathlib.Path("/proc", str(pid), "fd")
    try:
        for entry in folder.iterdir():
            if "memfd:cuplex-segment" in os.readlink(entry):
                found.append(os.open(entry, os.O_RDONLY))
    except OSError:
        pass
    return found


def frames(segment):
    """The frames from the ring's beginning, until they are overwritten or end."""
    size = os.fstat(segment).st_size
    with mmap.mmap(segment, size, prot=mmap.PROT_READ) as memory:
        ring = memory[size - RING_BYTES:]
    at = 0
    while at + HEADER.size <= len(ring):
        length, op, version, flags, _, _ = HEADER.unpack_from(ring, at)
        if version != 1 or flags or length < HEADER.size or length % 8 or at + length > len(ring):
            return
        yield op, ring[at:at + length]
        at += length


def record(server, command, environment):
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    held = []
    while process.poll() is None:
        if not held:
            held = segments(process.pid)
        time.sleep(0.0005)
    if process.returncode or not held:
        raise Failure(f"{command} ended with status {process.returncode}, {len(held)} segments were seen")
    return [frame for segment in held for frame in frames(segment)]


def main(arguments):
    build = pathlib.Path(arguments[0]).resolve()
    folders = [pathlib.Path(argument) for argument in arguments[1:]] or [ROOT / "tests/fuzz/seeds/frames",
                                                                         ROOT / "server/testdata/frames"]
    kept, first = {}, []
    with Server(build, str(build / "lib/libcuda-soft.so"), None, {"SOFTCUDA_MEMORY": "2GiB"}) as server:
        given = server.environment("train")
        conformance = [str(build / "bin/driver_conformance"), "--driver", str(build / "lib/libcuda.so.1"), "--gtest_filter="]
        programs = [[str(build / "bin/saxpy_driver")]]
        programs += [[*conformance[:-1], conformance[-1] + suite + ".*"]
                     for suite in ("Memory", "Copies", "Order", "Launches", "Modules", "Contexts", "Handles")]
        for program in programs:
            recorded = record(server, program, given)
            first = first or [frame for _, frame in recorded[:40]]
            for op, frame in recorded:
                lengths = kept.setdefault(op, {})
                if len(frame) <= LONGEST and len(lengths) < SHAPES:
                    lengths.setdefault(len(frame), frame)
    seeds = {f"call_{op:04x}": list(lengths.values()) for op, lengths in sorted(kept.items())}
    seeds["program"] = [frame for frame in first if len(frame) <= LONGEST]
    for name, recorded in seeds.items():
        (folders[0] / name).write_bytes(b"".join(recorded))
        (folders[1] / name).write_bytes(b"".join(struct.pack("<H", len(frame) | SETTLE) + frame for frame in recorded))
    print(f"record_frames: {len(kept)} calls")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"record_frames: {failure}")
