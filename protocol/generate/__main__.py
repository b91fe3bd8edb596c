"""python3 -m protocol.generate SPEC_FOLDER OUT_FOLDER [--docs FILE] [--check-docs FILE]

Writes the generated sources below OUT_FOLDER, leaving files that would not change untouched.
"""

import argparse
import pathlib
import sys

from protocol.generate import api as spec
from protocol.generate import docs, driver, exports, server, wire

OUTPUTS = {
    "cuda/driver_api.h": driver.driver_api_h,
    "cuda/driver_table.h": driver.driver_table_h,
    "cuda/faulty_driver.cc": driver.faulty_driver_cc,
    "cuda/abi_calls.inc": driver.abi_check_cc,
    "protocol/calls.fbs": wire.calls_fbs,
    "protocol/ops.h": wire.ops_h,
    "protocol/print.cc": wire.print_cc,
    "protocol/call_handler.h": server.call_handler_h,
    "protocol/uniform_call_handler.h": server.uniform_call_handler_h,
    "protocol/decode.cc": server.decode_cc,
    "client/exports.cc": exports.client_cc,
    "softcuda/exports.cc": exports.softcuda_cc,
}


def write(path, text):
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main(argv):
    p = argparse.ArgumentParser(prog="protocol.generate", description=__doc__.split("\n\n")[1])
    p.add_argument("spec", type=pathlib.Path, help="folder of .api files")
    p.add_argument("out", type=pathlib.Path, nargs="?", help="folder for generated sources")
    p.add_argument("--docs", type=pathlib.Path, help="write the call table here")
    p.add_argument("--check-docs", type=pathlib.Path, help="exit 1 where this call table is stale")
    args = p.parse_args(argv)
    try:
        api = spec.load(args.spec)
    except spec.ApiError as e:
        print(e, file=sys.stderr)
        return 1
    if args.out:
        for name, emit in OUTPUTS.items():
            write(args.out / name, emit(api))
        enums = args.spec.parent.parent / "cuda" / "driver_enums.h"
        write(args.out / "cuda/abi_values.inc", driver.abi_values_inc(enums.read_text()))
    if args.docs:
        write(args.docs, docs.api_md(api))
    if args.check_docs and (not args.check_docs.exists() or args.check_docs.read_text() != docs.api_md(api)):
        print(f"{args.check_docs} is stale: run ./dev docs.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
