"""How generated text is put together."""

import textwrap

BANNER = "// Generated from protocol/spec by protocol/generate. Do not edit."


def block(template, **lists):
    """Dedents a template and puts lists of lines where it says @name@ alone on a line."""
    out = []
    for line in textwrap.dedent(template).strip("\n").split("\n"):
        name = line.strip().strip("@")
        if line.strip() == f"@{name}@" and name in lists:
            out += lists[name]
        else:
            out.append(line)
    return "\n".join(out) + "\n"
