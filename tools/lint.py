#!/usr/bin/env python3
"""clang-tidy, as .clang-tidy says, over the files that changed.

    lint.py --build FOLDER [--jobs N] [--all | FILE...]

Changed means: not committed, or committed since the upstream branch (origin/main where a branch has none).
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys

import sources


def git(*words):
    done = subprocess.run(["git", *words], cwd=sources.ROOT, capture_output=True, text=True)
    return done.stdout.split("\n") if done.returncode == 0 else []


def changed():
    since = next((ref for ref in ("@{upstream}", "origin/main", "HEAD~1") if git("rev-parse", "--verify", "-q", ref)), "HEAD")
    base = (git("merge-base", since, "HEAD") or ["HEAD"])[0]
    return {p for p in git("diff", "--name-only", base) + git("ls-files", "--others", "--exclude-standard") if p}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--all", action="store_true")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    tool = shutil.which("clang-tidy-19")
    if not tool:
        sys.exit("lint: clang-tidy-19 is not installed; ./dev setup installs it")
    with open(os.path.join(args.build, "compile_commands.json")) as file:
        compiled = {os.path.relpath(unit["file"], sources.ROOT) for unit in json.load(file)}
    compiled &= set(sources.cplusplus())
    wanted = {os.path.relpath(f, sources.ROOT) for f in args.files} if args.files else changed()
    units = sorted(compiled if args.all else compiled & wanted)
    for header in sorted(f for f in wanted if f.endswith(".h") and not args.all):
        print(f"lint: {header} is looked at with the sources that include it (--all covers them)")

    def tidy(path):
        done = subprocess.run([tool, "-p", args.build, "--quiet", "--warnings-as-errors=*", path], cwd=sources.ROOT,
                              capture_output=True, text=True)
        return path, done.returncode, done.stdout

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for path, code, said in pool.map(tidy, units):
            print(f"lint: {path}{'' if code == 0 else ' has findings'}", flush=True)
            if code:
                bad += 1
                print(said)
    print(f"lint: {len(units)} files, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
