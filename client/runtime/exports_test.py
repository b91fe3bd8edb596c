"""Holds a built libcudart against a list of names: python3 exports_test.py LIBRARY MAJOR NAMES [NVIDIA'S LIBRARY]

Every name of the list is exported with the version libcudart.so.MAJOR as its default, no other name is, and the library is
called libcudart.so.MAJOR and needs nothing that a program with glibc does not have. Where NVIDIA's library is given, the list
is held against that one too.
"""

import re
import subprocess
import sys


def readelf(option, library):
    return subprocess.run(["readelf", option, "--wide", library], check=True, capture_output=True, text=True).stdout


def exported(library):
    """name -> version, of the defined dynamic symbols that are code or data."""
    found = {}
    for line in readelf("--dyn-syms", library).splitlines():
        part = line.split()
        if len(part) < 8 or part[4] not in ("GLOBAL", "WEAK") or part[6] in ("UND", "ABS"):
            continue
        name, _, version = part[7].partition("@")
        found[name] = version  # "@VERSION" where it is the default one
    return found


def main(library, major, names_file, reference=None):
    names = open(names_file, encoding="utf-8").read().split()
    faults = []
    ours = exported(library)
    faults += [f"{name} is not exported" for name in names if name not in ours]
    faults += [f"{name} is exported and not in {names_file}" for name in ours if name not in names]
    faults += [f"{name} has version {version[1:] or 'none'}" for name, version in ours.items() if version != f"@libcudart.so.{major}"]
    dynamic = readelf("--dynamic", library)
    if f"soname: [libcudart.so.{major}]" not in dynamic:
        faults.append(f"the soname is not libcudart.so.{major}")
    for needed in re.findall(r"Shared library: \[(.*?)\]", dynamic):
        if not re.match(r"(libc|libm|libdl|libpthread|librt|ld-linux-x86-64)\.so", needed):
            faults.append(f"it needs {needed}, which a program may not have")
    if reference:
        theirs = set(exported(reference))
        faults += [f"NVIDIA's library and {names_file} differ by {name}" for name in theirs ^ set(names)]
    for fault in faults:
        print(f"{library}: {fault}", file=sys.stderr)
    print(f"{library}: {len(ours)} names, {len(faults)} faults")
    return 1 if faults or not names else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
