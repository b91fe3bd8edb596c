#!/usr/bin/env python3
"""Holds every #include of ours against the table of arrows in docs/layering.md.

    layers.py [ROOT]      prints one sentence a crossing, "file:line: ...", and exits 1 if there is any
"""
import pathlib
import re
import sys

SOURCES = {".h", ".cc", ".cu", ".cuh", ".inc"}
ROW = re.compile(r"^\|\s*`([\w/]+)`\s*\|([^|]*)\|")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


class TableError(Exception):
    pass


def read_arrows(text, name="docs/layering.md"):
    """The table as {room: set of rooms it may include}."""
    arrows = {}
    for number, line in enumerate(text.splitlines(), 1):
        row = ROW.match(line)
        if not row:
            continue
        room, cell = row.group(1), row.group(2)
        if room in arrows:
            raise TableError(f"{name}:{number}: `{room}` has a second row; one row a room was expected.")
        arrows[room] = set(re.findall(r"`([\w/]+)`", cell))
    if not arrows:
        raise TableError(f"{name}: no row like \"| `room` | `other` | ... |\" was found; the arrows are expected there.")
    for room, allowed in arrows.items():
        for other in sorted(allowed - arrows.keys()):
            raise TableError(f"{name}: `{room}` may include `{other}`, but `{other}` has no row of its own.")
    check_acyclic(arrows, name)
    return arrows


def check_acyclic(arrows, name):
    done, path = set(), []

    def visit(room):
        if room in path:
            raise TableError(f"{name}: the arrows go in a circle: {' -> '.join(path[path.index(room):] + [room])}.")
        if room in done:
            return
        path.append(room)
        for other in sorted(arrows[room] - {room}):
            visit(other)
        done.add(path.pop())

    for room in arrows:
        visit(room)


def room_of(path, arrows):
    """The longest room that is a prefix of the path, or None."""
    parts = path.split("/")[:-1]
    for n in range(len(parts), 0, -1):
        if "/".join(parts[:n]) in arrows:
            return "/".join(parts[:n])
    return None


def crossings(path, text, arrows):
    """Sentences for the includes in one file that no arrow allows; `path` is relative to the root."""
    room = room_of(path, arrows)
    tops = {r.split("/")[0] for r in arrows}
    for number, line in enumerate(text.splitlines(), 1):
        include = INCLUDE.match(line)
        if not include:
            continue
        where, quoted = f"{path}:{number}", include.group(1)
        target = quoted or include.group(2)
        ours = "/" in target and target.split("/")[0] in tops
        if quoted and not ours:
            yield f'{where}: "{target}" names no room; "room/file.h" was expected, or <...> for a header that is not ours.'
        elif not quoted and ours:
            yield f'{where}: <{target}> is a header of ours; "{target}" in quotes was expected.'
        elif ours:
            other = room_of(target, arrows)
            if other is None:
                yield f"{where}: \"{target}\" is in no room that docs/layering.md lists."
            elif other != room and other not in arrows[room]:
                may = ", ".join(sorted(arrows[room])) or "nothing"
                yield f'{where}: {room} may not include {other} ("{target}"); docs/layering.md allows it {may}.'


def check(root):
    root = pathlib.Path(root)
    arrows = read_arrows((root / "docs/layering.md").read_text())
    found, files = [], 0
    for top in sorted({room.split("/")[0] for room in arrows}):
        for file in sorted((root / top).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix in SOURCES and room_of(path, arrows):
                files += 1
                found += crossings(path, file.read_text(errors="replace"), arrows)
    return found, files


def main(argv):
    root = argv[1] if len(argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    try:
        found, files = check(root)
    except TableError as error:
        print(error)
        return 1
    for sentence in found:
        print(sentence)
    print(f"layers: {files} files, {len(found)} includes against the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
