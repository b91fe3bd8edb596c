"""Emits docs/api.md: for each call whether the client and softcuda carry it, and how it travels."""


def _way(c):
    if c.oneway:
        return "one-way"
    if c.op is not None:
        return "reply"
    return "local" if "local" in c.words else ""


def api_md(api):
    driver = api.driver()
    carried = [c for c in driver if "refuse" not in c.words]
    soft = [c for c in driver if "soft" in c.words]
    out = ["# The driver API, call by call", "",
           "Generated from `protocol/spec/*.api` by `./dev docs`; a test fails when it is stale.", "",
           f"{len(driver)} calls and {sum(1 for c in driver if c.twin)} per-thread-stream twins are exported. The client "
           f"carries {len(carried)} calls, softcuda {len(soft)}. The others answer `CUDA_ERROR_NOT_SUPPORTED` and log "
           "their name once.", "",
           "*Travels*: **one-way** calls cost no round trip; **reply** calls do; **local** ones are answered in the "
           "client, or by other calls of this table and of `wire.api`.", ""]
    for room, title in api.rooms:
        calls = [c for c in api.calls if c.room == room]
        out += [f"## {title}", ""]
        if room == "wire":
            out += ["| call | number | travels | what |", "|---|---|---|---|"]
            out += [f"| `{c.name}` | `{c.op:#06x}` | {_way(c)} | {c.doc} |" for c in calls]
        else:
            out += ["| call | name, since | client | travels | softcuda |", "|---|---|---|---|---|"]
            for c in calls:
                base, version = c.words["was"]
                v = int(version)
                twin = f", `{c.words['twin'][0]}`" if c.twin else ""
                out.append(f"| `{c.name}`{twin} | {base} {v // 1000}.{v % 1000 // 10} | "
                           f"{'' if 'refuse' in c.words else 'yes'} | {_way(c)} | {'yes' if 'soft' in c.words else ''} |")
        out.append("")
    return "\n".join(out)
