#!/usr/bin/env python3
"""Lays out the C++ sources with clang-format 19, as .clang-format says.

    format.py            rewrites
    format.py --check    changes nothing, names the files that differ and exits 1; exits 77 where clang-format-19 is absent
"""
import shutil
import subprocess
import sys

import sources

SKIPPED = 77  # CTest's SKIP_RETURN_CODE


def differing(tool, paths):
    """Those of the paths that clang-format would change; one process for many files, for it starts slowly."""
    said = subprocess.run([tool, "--style=file", "--dry-run", *paths], cwd=sources.ROOT, capture_output=True, text=True,
                          check=True).stderr
    return {line.split(":", 1)[0] for line in said.splitlines() if "[-Wclang-format-violations]" in line}


def main(argv):
    check = argv[1:] == ["--check"]
    if argv[1:] and not check:
        print(f'format: {" ".join(argv[1:])} is not known; --check or nothing was expected.')
        return 2
    tool = shutil.which("clang-format-19")
    if not tool:
        print("format: skipped, clang-format-19 is not installed")
        return SKIPPED
    paths = sources.cplusplus()
    differ = sorted(set().union(*(differing(tool, paths[i:i + 100]) for i in range(0, len(paths), 100))))
    if differ and not check:
        subprocess.run([tool, "--style=file", "-i", *differ], cwd=sources.ROOT, check=True)
    for path in differ:
        print(f"{path}: {'is not laid out as .clang-format says; ./dev format does it' if check else 'laid out'}")
    print(f"format: {len(paths)} files, {len(differ)} {'differ' if check else 'changed'}")
    return 1 if check and differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
