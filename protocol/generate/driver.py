"""Emits the driver API as data: prototypes, the function table, entry points by name, a driver that fails on demand."""

import re

from protocol.generate.text import BANNER, block


def _declaration(name, call):
    return f"CUPLEX_EXPORT CUresult {name}({call.declarations});"


def driver_api_h(api):
    lines = []
    for c in api.driver():
        lines.append(_declaration(c.name, c))
        if c.twin:
            lines.append(_declaration(c.twin, c))
    return block(f"""
        {BANNER}
        // Every exported name of the CUDA 13.0 driver API, the per-thread-stream twins included. C and C++.
        #pragma once

        #include "cuda/driver_types.h"

        #define CUPLEX_EXPORT __attribute__((visibility("default")))

        // clang-format off
        #if defined(__cplusplus) && !defined(CUPLEX_ABI_CHECK)  // the check declares these beside NVIDIA's
        extern "C" {{
        #endif
        @lines@
        #if defined(__cplusplus) && !defined(CUPLEX_ABI_CHECK)  // the check declares these beside NVIDIA's
        }}
        #endif
        // clang-format on
        """, lines=lines)


def driver_table_h(api):
    calls = api.driver()
    return block(f"""
        {BANNER}
        // The driver as a table of functions. The three who fill one: the real driver, softcuda, the client. Data.
        #pragma once

        #include "cuda/driver_types.h"

        // clang-format off
        namespace cuplex {{

        struct DriverTable {{
        @members@
        }};

        /// CUPLEX_DRIVER_CALLS(X) is X(cuInit) X(...) for every call.
        #define CUPLEX_DRIVER_CALLS(X) \\
        @names@
          /* end */

        }}  // namespace cuplex
        // clang-format on
        """, members=[f"  CUresult (*{c.name})({c.declarations});" for c in calls],
                 names=[f"  X({c.name}) \\" for c in calls])


def faulty_driver_cc(api):
    lines = []
    for c in api.driver():
        names = ", ".join(p.name for p in c.params)
        lines += [f"CUresult Faulty_{c.name}({c.declarations}) {{",
                  f'  if (CUresult r = Ask("{c.name}")) return r;', f"  return g_real.{c.name}({names});", "}"]
    sets = [f"  out.{c.name} = Faulty_{c.name};" for c in api.driver()]
    return block(f"""
        {BANNER}
        #include "cuda/faulty_driver.h"

        namespace cuplex {{
        namespace {{

        DriverTable g_real;
        CallHook* g_hook;

        CUresult Ask(const char* name) {{ return g_hook ? g_hook->Before(name) : CUDA_SUCCESS; }}

        // clang-format off
        @lines@
        // clang-format on

        }}  // namespace

        DriverTable MakeFaultyDriver(const DriverTable& real, CallHook* hook) {{
          g_real = real;
          g_hook = hook;
          DriverTable out;
        @sets@
          return out;
        }}

        }}  // namespace cuplex
        """, lines=lines, sets=sets)


def abi_check_cc(api):
    checks = []
    for c in api.driver():
        for name in filter(None, (c.name, c.twin)):
            checks.append(f"CHECK_CALL({name});")
    return block(f"""
        {BANNER}
        @checks@
        """, checks=checks)


def _rows(api, carried):
    rows = []
    for c in sorted(api.driver(), key=lambda c: (c.words["was"][0], int(c.words["was"][1]))):
        base, version = c.words["was"]
        twin = f"reinterpret_cast<void*>(&{c.twin}), {c.words['twin'][1]}" if c.twin else "nullptr, 0"
        rows.append(f'    {{"{base}", {version}, reinterpret_cast<void*>(&{c.name}), {twin}, '
                    f'{"true" if carried(c) else "false"}}},')
    return rows


def proc_table(api, space, carried):
    """The rows cuGetProcAddress answers from, by base name and version."""
    return block(f"""
        namespace {space} {{

        // clang-format off
        const cuplex::ProcRow kProcRows[] = {{
        @rows@
        }};
        // clang-format on
        const size_t kProcRowCount = sizeof(kProcRows) / sizeof(kProcRows[0]);

        }}  // namespace {space}
        """, rows=_rows(api, carried))


def abi_values_inc(enums_text):
    """A check of every enumerator that cuda/driver_enums.h gives."""
    names = re.findall(r"^  (CU\w+) = ", enums_text, re.M)
    return BANNER + "\n" + "".join(f"CHECK_VALUE({n});\n" for n in names)
