#!/usr/bin/env python3
"""Writes what libcudart exports, out of runtime.api (which says how its lines read) and a list of names.

    generate.py --api runtime.api --docs docs/runtime.md [--check]
    generate.py --api runtime.api --major 12|13 --names names_13.txt --out FOLDER

The first writes the table of calls, or with --check says whether it is stale. The second writes into FOLDER, for that major
version:
    calls.h        prototypes of the hand-written functions, cuplex::runtime::NAME
    exports.h      prototypes of the carried exported functions, for tests
    exports.cc     the exported functions: carried ones call the hand-written side, refused ones say so once
    libcudart.map  the linker's version script
    abi_check.cc   every carried call declared once more after NVIDIA's header, so that the compiler compares

The names are those of NVIDIA's library; runtime.api must account for each of them and for no other. Errors go to
standard error as FILE:LINE: SENTENCE, with exit status 1. Standard library only.
"""

import argparse
import pathlib
import re
import sys
from dataclasses import dataclass, field

SUFFIXES = ("ptsz", "ptds")


class ApiError(Exception):
    def __init__(self, path, line, sentence):
        super().__init__(f"{path}:{line}: {sentence}")


@dataclass
class Call:
    name: str
    line: int
    room: str
    majors: set
    carried: bool = False
    result: str = "cudaError_t"
    parameters: list = field(default_factory=list)  # (type, name)
    twin: str = ""  # "ptsz", "ptds" or ""
    twin_argument: str = ""  # the argument that @ptsz=NAME changes; the streams where empty
    bare: bool = False

    @property
    def short(self):
        """The hand-written function's name: without "cuda" in front, and Nvcc for "__cuda"."""
        return re.sub(r"^cuda", "", re.sub(r"^__cuda", "Nvcc", self.name))

    def exported(self):
        return [self.name] + ([f"{self.name}_{self.twin}"] if self.twin else [])


def split_parameters(text):
    parameters = []
    for one in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(.*[\s*])(\w+)", one)
        if not match or not match.group(1).strip():
            return None
        parameters.append((match.group(1).strip(), match.group(2)))
    return parameters


def parse(path, text):
    calls, room = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"room\s+(\w+)", line)
        if match:
            room = match.group(1)
            continue
        match = re.fullmatch(r"(\w+)\s*(\((.*?)\))?\s*(?:->\s*([\w\s*]+?))?\s*((?:@\S+\s*)*)", line)
        if not match:
            raise ApiError(path, number, f"`{line}` is not a call: expected NAME, or NAME(PARAMETERS), and words that begin with @")
        name, parens, inside, result, words = match.groups()
        call = Call(name, number, room, {12, 13}, carried=parens is not None)
        if call.carried:
            call.parameters = split_parameters(inside)
            if call.parameters is None:
                raise ApiError(path, number, f"the parameters of {name} are `{inside}`; expected TYPE NAME, separated by commas")
            call.result = result or call.result
        elif result:
            raise ApiError(path, number, f"{name} has a result type but no parameters; a refused call has neither")
        for word in words.split():
            base, _, argument = word[1:].partition("=")
            if base in ("12", "13"):
                call.majors = {int(base)}
            elif base in SUFFIXES:
                call.twin, call.twin_argument = base, argument
                if argument and argument not in [p[1] for p in call.parameters]:
                    raise ApiError(path, number, f"@{base}={argument} names no parameter of {name}")
                if call.carried and base == "ptsz" and not argument and not any(is_stream(t) for t, _ in call.parameters):
                    raise ApiError(path, number, f"{name} is @ptsz but takes no cudaStream_t; use @ptds or @ptsz=PARAMETER")
            elif base == "bare":
                call.bare = True
            else:
                raise ApiError(path, number, f"@{base} is not a word; expected one of @12 @13 @ptsz @ptds @bare")
        calls.append(call)
    return calls


def is_stream(type_):
    return type_ == "cudaStream_t"


def choose(path, calls, major, names):
    """The calls of one major version, held against the names that NVIDIA's library exports."""
    chosen, seen = [], {}
    for call in calls:
        if major not in call.majors:
            continue
        for name in call.exported():
            if name in seen:
                raise ApiError(path, call.line, f"{name} is described twice for CUDA {major}; the first is in line {seen[name]}")
            if name not in names:
                raise ApiError(path, call.line, f"libcudart.so.{major} does not export {name}")
            seen[name] = call.line
        chosen.append(call)
    missing = sorted(set(names) - set(seen))
    if missing:
        raise ApiError(path, 1, f"no line describes {', '.join(missing)} of libcudart.so.{major}")
    return chosen


def signature(call, extra=()):
    return ", ".join(f"{t} {n}" for t, n in [*call.parameters, *extra])


def calls_header(calls, major):
    out = [f"// Generated from runtime.api: the hand-written side of libcudart.so.{major}. Any thread.", "#pragma once", "",
           '#include "client/runtime/runtime_types.h"', "", "namespace cuplex::runtime {", ""]
    room = None
    for call in filter(lambda c: c.carried, calls):
        if call.room != room:
            room = call.room
            out.append(f"// {room}.cc")
        extra = [("cudaStream_t", "stream")] if call.twin == "ptds" else []
        out.append(f"{call.result} {call.short}({signature(call, extra)});")
    return "\n".join([*out, "", "}  // namespace cuplex::runtime", ""])


def export_body(call, per_thread):
    arguments = []
    for type_, name in call.parameters:
        changed = name == call.twin_argument if call.twin_argument else is_stream(type_)
        arguments.append(f"PerThread({name})" if per_thread and changed else name)
    if call.twin == "ptds":
        arguments.append("cudaStreamPerThread" if per_thread else "nullptr")
    invoked = f"cuplex::runtime::{call.short}({', '.join(arguments)})"
    if call.result == "void":
        return f"{invoked};"
    return f"return {invoked if call.bare else f'Keep({invoked})'};"


def exports_header(calls, major):
    out = [f"// Generated from runtime.api: the carried functions that libcudart.so.{major} exports. Any thread.",
           "#pragma once", "", '#include "client/runtime/runtime_types.h"', "", 'extern "C" {']
    for call in filter(lambda c: c.carried, calls):
        out += [f"{call.result} {name}({signature(call)});" for name in call.exported()]
    return "\n".join([*out, "}", ""])


def exports_source(calls, major):
    out = [f"// Generated from runtime.api: what libcudart.so.{major} exports.", '#include "client/runtime/calls.h"',
           '#include "client/runtime/exported.h"', "", "using cuplex::runtime::Keep;", "using cuplex::runtime::PerThread;",
           "using cuplex::runtime::Refuse;", "", 'extern "C" {', ""]
    for call in calls:
        for index, name in enumerate(call.exported()):
            if call.carried:
                out.append(f"CUPLEX_EXPORTED {call.result} {name}({signature(call)}) {{ {export_body(call, index == 1)} }}")
            else:
                out.append(f'CUPLEX_EXPORTED cudaError_t {name}() {{ return Keep(Refuse("{name}")); }}')
    return "\n".join([*out, "", '}  // extern "C"', ""])


def version_script(calls, major):
    names = sorted(name for call in calls for name in call.exported())
    return "\n".join([f"libcudart.so.{major} {{", "  global:", *(f"    {n};" for n in names), "  local: *;", "};", ""])


def abi_check(calls, major):
    """Without the names that begin with __ and the twins, which NVIDIA's headers do not declare."""
    out = ["// Generated from runtime.api: a signature that differs from NVIDIA's does not compile.",
           "#include <cuda_runtime_api.h>", "#include <cuda_profiler_api.h>", "", 'extern "C" {']
    for call in filter(lambda c: c.carried and not c.name.startswith("__"), calls):
        out.append(f"{call.result} {call.name}({signature(call)});")
    return "\n".join([*out, "}", ""])


def docs_page(calls):
    """One row a name, whichever versions it is in; `yes` is carried, `no` refused, empty not exported."""
    rows = {}  # name -> {major: carried, "twin": ...}
    for call in calls:
        row = rows.setdefault(call.name, {})
        row.update({major: call.carried for major in call.majors})
        row["twin"] = call.twin or row.get("twin", "")
    carried = sum(any(row.get(major) for major in (12, 13)) for row in rows.values())
    out = ["# The runtime API, call by call", "",
           "Generated from `client/runtime/runtime.api` by `./dev docs`; a test fails when it is stale.", "",
           f"`libcudart.so.12` and `libcudart.so.13` stand on the driver API alone. {carried} of {len(rows)} calls are carried: they ",
           "work as far as the driver underneath carries what they ask of it ([docs/api.md](api.md)). The others answer",
           "`cudaErrorNotSupported` and log their name once.", "",
           "| call | 12 | 13 | twin |", "|---|---|---|---|"]
    words = {True: "yes", False: "no", None: ""}
    for name, row in sorted(rows.items()):
        out.append(f"| `{name}` | {words[row.get(12)]} | {words[row.get(13)]} | {'_' + row['twin'] if row['twin'] else ''} |")
    return "\n".join([*out, ""]).replace(" \n", "\n")


def write_docs(page, text, check):
    if not check:
        page.write_text(text)
        return 0
    if page.exists() and page.read_text() == text:
        return 0
    print(f"{page} is stale; ./dev docs writes it anew", file=sys.stderr)
    return 1


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--api", type=pathlib.Path, required=True)
    parser.add_argument("--docs", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--major", type=int, choices=(12, 13))
    parser.add_argument("--names", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args(arguments)
    if not given.docs and not (given.major and given.names and given.out):
        parser.error("expected --docs, or --major with --names and --out")
    try:
        if given.docs:
            return write_docs(given.docs, docs_page(parse(given.api, given.api.read_text())), given.check)
        calls = choose(given.api, parse(given.api, given.api.read_text()), given.major, given.names.read_text().split())
    except ApiError as error:
        print(error, file=sys.stderr)
        return 1
    given.out.mkdir(parents=True, exist_ok=True)
    for name, text in (("calls.h", calls_header(calls, given.major)),
                       ("exports.h", exports_header(calls, given.major)),
                       ("exports.cc", exports_source(calls, given.major)),
                       ("libcudart.map", version_script(calls, given.major)),
                       ("abi_check.cc", abi_check(calls, given.major))):
        (given.out / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
