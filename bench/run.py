#!/usr/bin/env python3
"""Runs a benchmark and reports: a table on standard output, the same as JSON in BUILD/bench/NAME.json.

    run.py --build FOLDER [--repeat N] [NAME]      without NAME lists the benchmarks

A row is a metric, its value and unit, and, where we set ourselves one, the target and whether it holds. A benchmark
measures and reports; it does not fail for being slow. Exit status 1 where something could not be measured.

With --repeat all of it is measured N times, and a row is the median of its N values; JSON has them all, as "runs".
"""
import argparse
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from bench import decision, sharing, slicing, softcuda, transport  # noqa: E402
from serving import Failure  # noqa: E402

BENCHMARKS = {"decision": decision, "transport": transport, "softcuda": softcuda, "sharing": sharing, "slicing": slicing}


def holds(row):
    """True or False where the row has a target (like "<= 3", ">= 0.9"), else None."""
    if not row.get("target"):
        return None
    relation, bound = row["target"].split()
    return {"<": row["value"] < float(bound), "<=": row["value"] <= float(bound), ">=": row["value"] >= float(bound)}[relation]


def medians(runs):
    """One list of rows of several: each row's median, and that of its bound, where that depends on what was measured."""
    rows = []
    for same in zip(*runs, strict=True):
        row = {**same[0], "value": statistics.median(each["value"] for each in same)}
        if len(runs) > 1:
            row["runs"] = [each["value"] for each in same]
            if row.get("target"):
                bounds = [float(each["target"].split()[1]) for each in same]
                row["target"] = f"{row['target'].split()[0]} {statistics.median(bounds):g}"
        rows.append(row)
    return rows


def table(rows):
    width = max(len(row["metric"]) for row in rows)
    lines = [f"{'metric':<{width}}  {'value':>12}  {'unit':<12} {'target':<10} holds"]
    for row in rows:
        said = {None: "", True: "yes", False: "no"}[row["holds"]]
        lines.append(f"{row['metric']:<{width}}  {row['value']:>12.4g}  {row['unit']:<12} {row.get('target') or '':<10} {said}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--repeat", type=int, default=1, metavar="N")
    parser.add_argument("name", nargs="?")
    options = parser.parse_args()
    if not options.name:
        for name, module in BENCHMARKS.items():
            print(f"{name:<12} {module.__doc__.splitlines()[0]}")
        return 0
    if options.name not in BENCHMARKS:
        print(f'bench: "{options.name}" is no benchmark; one of {", ".join(BENCHMARKS)} was expected.', file=sys.stderr)
        return 2
    if options.repeat < 1:
        print(f"bench: --repeat {options.repeat} was given, at least 1 was expected.", file=sys.stderr)
        return 2
    build = pathlib.Path(options.build).resolve()
    try:
        rows = medians([BENCHMARKS[options.name].measure(build) for _ in range(options.repeat)])
    except Failure as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    for row in rows:
        row["holds"] = holds(row)
    out = build / "bench" / f"{options.name}.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    short = [row["metric"] for row in rows if row["holds"] is False]
    print(f"bench: {options.name}: {sum(row['holds'] is True for row in rows)} targets hold, {len(short)} do not; {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
