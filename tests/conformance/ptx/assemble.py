#!/usr/bin/env python3
"""Assembles the whole PTX corpus with ptxas: what the corpus asks of a driver must be PTX.

    assemble.py PRINT_CORPUS PTXAS FOLDER    the files are written to FOLDER
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys


def main(printer, ptxas, folder):
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([printer, folder], check=True)

    def assemble(path):
        ran = subprocess.run([ptxas, f"-arch={path.name.split('.')[0]}", "-O0", "-o", path.with_suffix(".cubin"), path],
                             capture_output=True, text=True)
        return path.name, ran.returncode, ran.stderr

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, status, said in pool.map(assemble, sorted(folder.glob("*.ptx"))):
            if status:
                failed += 1
                print(f"{name}: {said}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
