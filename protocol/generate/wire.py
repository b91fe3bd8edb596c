"""Emits what both ends of the wire share: calls.fbs, ops.h, and the text form of a frame for traces."""

import re

from protocol.generate.text import BANNER, block

SCALARS = {  # C type: (FlatBuffers type, C++ type)
    "uint64_t": ("ulong", "uint64_t"), "size_t": ("ulong", "uint64_t"), "CUdeviceptr": ("ulong", "uint64_t"),
    "unsigned long long": ("ulong", "uint64_t"), "uint32_t": ("uint", "uint32_t"), "unsigned int": ("uint", "uint32_t"),
    "int": ("int", "int32_t"), "int32_t": ("int", "int32_t"), "float": ("float", "float"),
}
HANDLES = {"CUstream", "CUevent", "CUfunction", "CUmodule", "CUcontext"}


def scalar(ctype):
    """(FlatBuffers type, C++ type) of a value that travels."""
    ctype = ctype.removeprefix("const ").rstrip("*")
    if ctype in HANDLES:
        return ("ulong", "uint64_t")
    return SCALARS.get(ctype, ("int", "int32_t"))  # the rest are enumerations


def field(name):
    """A parameter's name as FlatBuffers wants it: snake_case."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z][a-z])", r"_\1\2", name).lower()


def args_of(call):
    """The parameters in a call's fixed part, largest first so that the struct has no holes."""
    args = [p for p in call.params if p.way != "out" and not p.span]
    return sorted(args, key=lambda p: scalar(p.ctype)[0] != "ulong")


def replies_of(call):
    """The values in a reply's fixed part; for a span, its length."""
    out = [(p.name, scalar(p.ctype)) for p in call.params if p.way == "out" and not p.span]
    out += [(p.length, ("uint", "uint32_t")) for p in call.params if p.way == "out" and p.span]
    return sorted(out, key=lambda p: p[1][0] != "ulong")


def fields(names):
    return [f"  {field(name)}:{kind};" for name, kind in names] or ["  reserved:uint;"]


def calls_fbs(api):
    lines = [BANNER, "// The fixed part of every call and reply. What follows it is in docs/wire.md.", "",
             "namespace cuplex.wire;", ""]
    for c in api.ops():
        lines += [f"struct {c.name}Args {{", *fields([(p.name, scalar(p.ctype)[0]) for p in args_of(c)]), "}"]
        if not c.oneway:
            lines += [f"struct {c.name}Reply {{", *fields([(n, k[0]) for n, k in replies_of(c)]), "}"]
        lines.append("")
    return "\n".join(lines)


def ops_h(api):
    ops = api.ops()
    rows = []
    for c in ops:
        ask = c.ask or ("none", "0")
        reply = "0" if c.oneway else f"sizeof(wire::{c.name}Reply)"
        rows.append(f'    {{Op::{c.name}, "{c.name}", sizeof(wire::{c.name}Args), {reply}, '
                    f'{"true" if c.oneway else "false"}, Ask::k{ask[0].capitalize()}}},')
    return block(f"""
        {BANNER}
        // The numbers of the calls and what is known of each. Append-only. Data: any thread.
        #pragma once

        #include <cstddef>
        #include <cstdint>

        #include "protocol/calls_generated.h"

        namespace cuplex {{

        enum class Op : uint16_t {{
        @ops@
        }};

        /// The question put to policy before a call runs.
        enum class Ask : uint8_t {{ kNone, kGrow, kHost, kCopy, kFill, kLaunch }};

        struct OpRow {{
          Op op;
          const char* name;
          size_t args_bytes;   // fixed part of the call
          size_t reply_bytes;  // fixed part of the reply
          bool oneway;
          Ask ask;
        }};

        inline constexpr OpRow kOps[] = {{
        @rows@
        }};

        /// The row of a number, or nullptr where no call has it.
        constexpr const OpRow* FindOp(uint16_t op) {{
          for (const OpRow& row : kOps)
            if (static_cast<uint16_t>(row.op) == op) return &row;
          return nullptr;
        }}

        }}  // namespace cuplex
        """, ops=[f"  {c.name} = {c.op:#06x}," for c in ops], rows=rows)


def print_cc(api):
    cases = []
    for c in api.ops():
        formats = ", ".join(f"{p.name}={{}}" for p in args_of(c))
        values = "".join(f", a.{field(p.name)}()" for p in args_of(c))
        cases += [f"    case Op::{c.name}: {{"]
        if args_of(c):
            cases += [f"      wire::{c.name}Args a;", "      std::memcpy(static_cast<void*>(&a), args.data(), sizeof(a));",
                      f'      return fmt::format("{c.name}({formats})"{values});']
        else:
            cases += [f'      return "{c.name}()";']
        cases += ["    }"]
    return block(f"""
        {BANNER}
        #include "protocol/print.h"

        #include <cstring>

        #include <fmt/format.h>

        #include "protocol/ops.h"

        namespace cuplex {{

        std::string PrintCall(uint16_t op, std::span<const std::byte> args) {{
          const OpRow* row = FindOp(op);
          if (!row) return fmt::format("call {{:#06x}} (unknown)", op);
          if (args.size() < row->args_bytes) return fmt::format("{{}} (short: {{}} bytes)", row->name, args.size());
          switch (row->op) {{
        @cases@
          }}
          return {{}};
        }}

        }}  // namespace cuplex
        """, cases=cases)
