"""Emits the server's side: one pure virtual function a call, and the decoder that checks a frame and calls it."""

from protocol.generate.text import BANNER, block
from protocol.generate.wire import field


def _signature(c):
    parts = [f"const wire::{c.name}Args& args"]
    parts += [f"std::span<const std::byte> {p.name}" for p in c.params if p.span and p.way == "in"]
    if not c.oneway:
        parts.append(f"wire::{c.name}Reply* reply")
    parts += [f"std::string* {p.name}" for p in c.params if p.span and p.way == "out"]
    return ", ".join(parts)


def call_handler_h(api):
    rows = []
    for c in api.ops():
        rows += [f"  /// {c.doc}"] if c.doc else []
        rows += [f"  virtual Outcome {c.name}(const CallFrame& frame, {_signature(c)}) = 0;"]
    return block(f"""
        {BANNER}
        // What the server does for each call that travels. Called by the thread that drains a session's ring; `args` and
        // spans are private copies, checked for length and nothing else.
        #pragma once

        #include <cstddef>
        #include <span>
        #include <string>

        #include "protocol/frame.h"
        #include "protocol/ops.h"

        namespace cuplex {{

        // clang-format off
        class CallHandler {{
         public:
          virtual ~CallHandler() = default;
        @rows@
        }};
        // clang-format on

        }}  // namespace cuplex
        """, rows=rows)


def uniform_call_handler_h(api):
    rows = []
    for c in api.ops():
        into = [p.name for p in c.params if p.span and p.way == "in"] or ["{}"]
        out = [p.name for p in c.params if p.span and p.way == "out"] or ["nullptr"]
        rows += [f"  Outcome {c.name}(const CallFrame& frame, {_signature(c)}) override {{",
                 f"    return Any(frame, std::as_bytes(std::span(&args, 1)), {into[0]}, {out[0]});", "  }"]
    return block(f"""
        {BANNER}
        // Answers every call by one function, for those that care for few calls or for none in particular. Data: any thread.
        #pragma once

        #include <cstddef>
        #include <span>
        #include <string>

        #include "protocol/call_handler.h"

        namespace cuplex {{

        // clang-format off
        class UniformCallHandler : public CallHandler {{
         public:
          /// `args` is the call's fixed part, `in` the span that came with it, `out` where its reply's span goes or null.
          virtual Outcome Any(const CallFrame& frame, std::span<const std::byte> args, std::span<const std::byte> in,
                              std::string* out) = 0;

        @rows@
        }};
        // clang-format on

        }}  // namespace cuplex
        """, rows=rows)


def decode_cc(api):
    cases = []
    for c in api.ops():
        ins = [p for p in c.params if p.span and p.way == "in"]
        outs = [p for p in c.params if p.span and p.way == "out"]
        cases += [f"    case Op::{c.name}: {{", f"      auto args = body.Read<wire::{c.name}Args>();",
                  "      if (!args) return Short(frame, body);"]
        for p in ins:
            cases += [f"      auto {p.name} = body.Bytes(args->{field(p.length)}());",
                      f"      if (!{p.name}) return Short(frame, body);"]
        given = "".join(f", *{p.name}" for p in ins)
        if c.oneway:
            cases += [f"      reply->outcome = handler.{c.name}(frame, *args{given});"]
        else:
            spans = "".join(f", &{p.name}" for p in outs)
            cases += [f"      std::string {p.name};" for p in outs]
            cases += [f"      wire::{c.name}Reply values{{}};",
                      f"      reply->outcome = handler.{c.name}(frame, *args{given}, &values{spans});",
                      "      if (reply->outcome.later) return {};"]
            cases += [f"      if ({p.name}.size() > args->{field(p.length)}()) {p.name}.resize(args->{field(p.length)}());"
                      for p in outs]
            cases += [f"      values.mutate_{field(p.length)}(static_cast<uint32_t>({p.name}.size()));" for p in outs]
            cases += ["      reply->Append(&values, sizeof(values));"]
            cases += [f"      reply->Append({p.name}.data(), {p.name}.size());" for p in outs]
        cases += ["      return {};", "    }"]
    return block(f"""
        {BANNER}
        #include "protocol/decode.h"

        #include "base/span_reader.h"

        namespace cuplex {{
        namespace {{

        Error Short(const CallFrame& frame, const SpanReader& body) {{
          return Fail(Blame::kCaller, "{{}} ends after {{}} bytes of arguments, more were expected.", frame.row->name, body.at());
        }}

        }}  // namespace

        Status DecodeCall(const CallFrame& frame, std::span<const std::byte> bytes, CallHandler& handler, CallReply* reply) {{
          SpanReader body(bytes);
          switch (frame.row->op) {{
            // clang-format off
        @cases@
            // clang-format on
          }}
          return Fail(Blame::kCaller, "call {{:#06x}} is unknown.", static_cast<unsigned>(frame.row->op));
        }}

        }}  // namespace cuplex
        """, cases=cases)
