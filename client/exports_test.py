"""Holds a built libcuda.so.1 against the description of the driver API: exports_test.py LIBRARY SPEC [NVIDIA'S STUB]

Every call and twin of the description is exported and nothing else is but the mark of a client, the library is called
libcuda.so.1, stays loaded, and needs nothing that a program with glibc does not have. Where NVIDIA's stub is given, the names
are held against that one too.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from protocol.generate import api  # noqa: E402

MARK = "cuplex_is_client"  # by which the server tells this library from a driver
ALLOWED = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux-x86-64)\.so")


def readelf(option, library):
    return subprocess.run(["readelf", option, "--wide", library], check=True, capture_output=True, text=True).stdout


def exported(library):
    found = set()
    for line in readelf("--dyn-syms", library).splitlines():
        part = line.split()
        if len(part) >= 8 and part[4] in ("GLOBAL", "WEAK") and part[6] not in ("UND", "ABS"):
            found.add(part[7].partition("@")[0])
    return found


def main(library, spec, stub=None):
    wanted = set()
    for call in api.load(spec).driver():
        wanted |= {call.name} | ({call.twin} if call.twin else set())
    ours = exported(library)
    faults = [] if MARK in ours else [f"{MARK} is not exported"]
    ours.discard(MARK)
    faults += [f"{name} is not exported" for name in sorted(wanted - ours)]
    faults += [f"{name} is exported and not described" for name in sorted(ours - wanted)]
    if stub:
        faults += [f"NVIDIA's stub and ours differ by {name}" for name in sorted(exported(stub) ^ ours)]
    dynamic = readelf("--dynamic", library)
    if "soname: [libcuda.so.1]" not in dynamic:
        faults.append("the soname is not libcuda.so.1")
    if "NODELETE" not in dynamic:
        faults.append("it may be unloaded while its threads run")
    for needed in re.findall(r"Shared library: \[(.*?)\]", dynamic):
        if not ALLOWED.match(needed):
            faults.append(f"it needs {needed}, which a program may not have")
    for fault in faults:
        print(f"{library}: {fault}", file=sys.stderr)
    print(f"{library}: {len(ours)} names, {len(faults)} faults")
    return 1 if faults or len(ours) != 637 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
