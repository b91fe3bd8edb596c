#!/usr/bin/env python3
"""Compiles the examples' .cu files to PTX and compares with the checked-in .ptx files, but for comments.

    ptx_test.py ARCH FOLDER NAME... -- NVCC ARGUMENT...

FOLDER/NAME/NAME.cu is compiled by NVCC with the arguments given and -arch=ARCH. Another release of nvcc writes other
PTX; then nothing is compared and the exit status is 77, which CTest counts as skipped.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

RELEASE = re.compile(r"release [\d.]+, V([\d.]+)")


def code(text):
    """The lines that are no comments, without what nvcc puts into the names of static things from the file's path."""
    text = re.sub(r"_INTERNAL_[0-9a-f]{8}_", "_INTERNAL_", text)
    return [line for line in text.splitlines() if not line.startswith("//")]


def main(arguments):
    split = arguments.index("--")
    arch, folder, names, nvcc = arguments[0], pathlib.Path(arguments[1]), arguments[2:split], arguments[split + 1:]
    installed = RELEASE.search(subprocess.run([nvcc[0], "--version"], capture_output=True, text=True, check=True).stdout)
    if not installed:
        print(f"ptx_test: {nvcc[0]} --version names no release")
        return 1
    differ = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            checked_in = (folder / name / f"{name}.ptx").read_text()
            wrote = RELEASE.search(checked_in)
            if not wrote or wrote.group(1) != installed.group(1):
                print(f"ptx_test: {name}.ptx was written by nvcc {wrote and wrote.group(1)}, here is {installed.group(1)}")
                return 77
            made = pathlib.Path(scratch, f"{name}.ptx")
            subprocess.run([*nvcc, f"-arch={arch}", "-ptx", "-o", made, folder / name / f"{name}.cu"], check=True)
            if code(made.read_text()) != code(checked_in):
                print(f"ptx_test: {name}.ptx is not what {name}.cu becomes; ./dev ptx writes it anew")
                differ += 1
    print(f"ptx_test: {len(names)} files, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
