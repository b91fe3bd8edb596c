"""Emits the exported names of the two libraries of ours that are drivers: the client and softcuda.

What is written by hand has no definition here, so a missing one does not link.
"""

from protocol.generate.driver import proc_table
from protocol.generate.text import BANNER, block
from protocol.generate.wire import HANDLES, args_of, field, replies_of, scalar


def _twin(call, space):
    """The per-thread-stream form: NULL means the calling thread's own stream."""
    lines = [f"CUresult {call.twin}({call.declarations}) {{"]
    streams = [p.name for p in call.params if p.ctype == "CUstream"]
    if not streams:
        lines.append(f"  {space}::PerThreadDefault scope;")
    args = [f"PerThread({p.name})" if p.name in streams else p.name for p in call.params]
    return lines + [f"  return {call.name}({', '.join(args)});", "}"]


def _refusal(name, call, space):
    return [f"CUresult {name}({call.declarations}) {{", f'  return {space}::NotCarried("{name}");', "}"]


def _forward(call):
    """The generic forwarder: values out, a reply back."""
    lines = [f"CUresult {call.name}({call.declarations}) {{"]
    for p in call.params:
        if p.way == "out" and not p.opt:
            lines.append(f"  if (!{p.name}) return CUDA_ERROR_INVALID_VALUE;")
    values = []
    for p in args_of(call):
        ctype = scalar(p.ctype)[1]
        if p.name == call.stream:
            values.append(f"cuplex::client::WireStream({p.name})")
        elif p.ctype in HANDLES:
            values.append(f"reinterpret_cast<uint64_t>({p.name})")
        else:
            values.append(f"static_cast<{ctype}>({p.name})")
    args = f"cuplex::wire::{call.name}Args args({', '.join(values) or '0'});"
    lines += [f"  {args}", f"  cuplex::wire::{call.name}Reply reply;",
              f"  CUresult result = cuplex::client::Call(cuplex::Op::{call.name}, args, &reply);"]
    outs = {n for n, _ in replies_of(call)}
    for p in call.params:
        if p.name in outs and p.way == "out":
            guard = f"result == CUDA_SUCCESS && {p.name}" if p.opt else "result == CUDA_SUCCESS"
            kind = p.ctype.rstrip("*")
            lines.append(f"  if ({guard}) *{p.name} = static_cast<{kind}>(reply.{field(p.name)}());")
    return lines + ["  return result;", "}"]


def _library(api, include, space, carried, generic):
    lines = []
    for c in api.driver():
        if not carried(c):
            lines += _refusal(c.name, c, space)
        elif generic(c):
            lines += _forward(c)
        if c.twin:
            lines += _twin(c, space) if carried(c) else _refusal(c.twin, c, space)
    return block(f"""
        {BANNER}
        #include "{include}"

        namespace {{

        [[maybe_unused]] CUstream PerThread(CUstream stream) {{ return stream ? stream : CU_STREAM_PER_THREAD; }}

        }}  // namespace

        extern "C" {{

        // clang-format off
        @lines@
        // clang-format on

        }}  // extern "C"

        """, lines=lines) + "\n" + proc_table(api, space, carried)


def client_cc(api):
    return _library(api, "client/exports.h", "cuplex::client", lambda c: "refuse" not in c.words,
                    lambda c: c.op is not None and not c.custom("client"))


def softcuda_cc(api):
    return _library(api, "softcuda/exports.h", "cuplex::softcuda", lambda c: "soft" in c.words, lambda c: False)
