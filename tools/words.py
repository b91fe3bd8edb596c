#!/usr/bin/env python3
"""Words that must not be in the tree: unfinished business, paths of one machine, names that say nothing.

    words.py [ROOT]      prints one sentence a finding, "file:line: ...", and exits 1 if there is any
"""
import pathlib
import re
import sys

import sources

# Written in pieces so that this file passes its own check.
IN_TEXT = [
    (re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b"), "unfinished business belongs in a change, not in the tree"),
    (re.compile(r"(?<![\w.$}~-])/(?:wo" r"rk|ro" r"ot)/"), "is a path of one machine"),
    (re.compile(r"\b(?:for n" r"ow|place" r"holder|hard-?" r"coded|not (?:yet )?imple" r"mented)\b", re.I),
     "says that something is missing without saying what happens instead"),
]
IN_NAMES = re.compile(r"(?:^|[_.-])(?:man" r"ager|hel" r"pers?|ut" r"ils?|im" r"pl|mi" r"sc)(?:[_.-]|$)", re.I)
TEXT = {"", ".h", ".cc", ".cu", ".py", ".md", ".txt", ".cmake", ".yaml", ".yml", ".json", ".fbs", ".api", ".service", ".map"}
EXEMPT = {"LICENSE"}


def in_text(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, why in IN_TEXT:
            for found in pattern.finditer(line):
                yield f'{path}:{number}: "{found.group(0)}" {why}.'


def in_name(path):
    for part in path.split("/"):
        found = IN_NAMES.search(part)
        if found:
            yield f'{path}: the name "{part}" says nothing of its subject; a noun of the problem was expected.'


def check(root):
    findings, paths = [], sources.tree(root)
    for path in paths:
        findings += in_name(path)
        file = pathlib.Path(root) / path
        if file.suffix in TEXT and file.name not in EXEMPT:
            findings += in_text(path, file.read_text(errors="replace"))
    return findings, len(paths)


def main(argv):
    findings, files = check(argv[1] if len(argv) > 1 else sources.ROOT)
    for sentence in findings:
        print(sentence)
    print(f"words: {files} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
