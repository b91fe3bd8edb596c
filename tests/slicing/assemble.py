#!/usr/bin/env python3
"""Assembles the sliced form of every module of this tree, and of the PTX corpus, with ptxas.

    assemble.py PRINT_SLICED PRINT_CORPUS PTXAS FOLDER    files are written to FOLDER
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main(print_sliced, print_corpus, ptxas, folder):
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([print_corpus, folder / "corpus"], check=True)
    modules = sorted([*(folder / "corpus").glob("*.ptx"), *ROOT.glob("examples/*/*.ptx"), *ROOT.glob("bench/softcuda/*/*.ptx"),
                      *ROOT.glob("tests/**/*.ptx"), *ROOT.glob("ptx/testdata/*.ptx")])
    subprocess.run([print_sliced, folder / "sliced", *modules], check=True)

    def assemble(path):
        target = re.search(r"^\.target (\w+)", path.read_text(), re.MULTILINE).group(1)
        ran = subprocess.run([ptxas, f"-arch={target}", "-O1", "-o", path.with_suffix(".cubin"), path],
                             capture_output=True, text=True)
        return modules[int(path.stem) - 1], ran

    texts, failed = sorted((folder / "sliced").glob("*.ptx")), 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for module, ran in pool.map(assemble, texts):
            if ran.returncode:
                failed += 1
                print(f"{module}, sliced: {ran.stdout}{ran.stderr}")
    print(f"{len(texts)} sliced modules, {failed} that ptxas refuses")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
