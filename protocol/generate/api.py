"""Reads `.api` files: the description of the driver API and of the calls that exist on the wire only.

Grammar (white space and line breaks are free, `#` starts a comment, `///` a sentence kept for the docs):

    file   = { room | call }
    room   = "room" name string
    call   = { "///" text } { word } name "(" [ param { "," param } ] ")"
    word   = "@" name [ "(" arg { "," arg } ")" ]
    param  = { "in" | "out" | "opt" } ctype name [ "[" name "]" ]

`ctype` is C as in the header. `in bytes x[n]` and `out bytes x[n]` are spans of n bytes. A pointer without a direction
never crosses the wire. Errors are `file:line: sentence`.
"""

import dataclasses
import pathlib
import re

WORDS = {  # word: (fewest arguments, most)
    "op": (1, 1), "oneway": (0, 0), "local": (0, 0), "refuse": (0, 0), "custom": (1, 2), "stream": (1, 1),
    "ask": (1, 1), "was": (2, 2), "twin": (2, 2), "soft": (0, 0),
}
ASKS = {"grow", "host", "copy", "fill", "launch"}
TOKEN = re.compile(r'\s+|#[^\n]*|(?P<doc>///[^\n]*)|(?P<string>"[^"\n]*")|(?P<name>[A-Za-z_]\w*)'
                   r'|(?P<number>0x[0-9a-fA-F]+|\d+)|(?P<mark>[@(),\[\]*])')


class ApiError(Exception):
    """A fault in an `.api` file; its text is `file:line: sentence`."""


@dataclasses.dataclass
class Param:
    ctype: str
    name: str
    way: str = ""        # "", "in" or "out"
    opt: bool = False
    length: str = ""     # the parameter that gives a span's bytes

    @property
    def span(self):
        return self.ctype == "bytes"

    @property
    def declaration(self):
        if self.span:
            return ("const void* " if self.way == "in" else "void* ") + self.name
        return f"{self.ctype} {self.name}"


@dataclasses.dataclass
class Call:
    name: str
    room: str
    where: str
    params: list
    words: dict
    doc: str = ""

    @property
    def op(self):
        return int(self.words["op"][0], 0) if "op" in self.words else None

    @property
    def oneway(self):
        return "oneway" in self.words

    @property
    def wire_only(self):
        return self.room == "wire"

    @property
    def ask(self):
        return tuple(self.words["ask"][0].split()) if "ask" in self.words else None

    @property
    def stream(self):
        return self.words.get("stream", [None])[0]

    @property
    def twin(self):
        return self.name + self.words["twin"][0] if "twin" in self.words else None

    def custom(self, side):
        return side in self.words.get("custom", [])

    @property
    def declarations(self):
        return ", ".join(p.declaration for p in self.params)


@dataclasses.dataclass
class Api:
    rooms: list   # (name, title)
    calls: list

    def driver(self):
        return [c for c in self.calls if not c.wire_only]

    def ops(self):
        return sorted((c for c in self.calls if c.op is not None), key=lambda c: c.op)


class _Tokens:
    def __init__(self, path, text):
        self.path, self.items, self.at = path, [], 0
        pos = 0
        while pos < len(text):
            m = TOKEN.match(text, pos)
            line = text.count("\n", 0, pos) + 1
            if not m:
                raise ApiError(f'{path}:{line}: "{text[pos]}" is no part of the notation.')
            if m.lastgroup:
                self.items.append((m.lastgroup, m.group(), line))
            pos = m.end()
        self.last = text.count("\n") + 1

    def fail(self, sentence):
        line = self.items[self.at][2] if self.at < len(self.items) else self.last
        raise ApiError(f"{self.path}:{line}: {sentence}")

    def peek(self, ahead=0):
        at = self.at + ahead
        return self.items[at][:2] if at < len(self.items) else ("end", "the end of the file")

    def take(self, what, text=None):
        group, value = self.peek()
        if group != what or (text is not None and value != text):
            wanted = f'"{text}"' if text else f"a {what}"
            self.fail(f'found "{value}", expected {wanted}.')
        self.at += 1
        return value

    def maybe(self, what, text):
        if self.peek() == (what, text):
            self.at += 1
            return True
        return False


def _param(t):
    p = Param("", "")
    while t.peek() in (("name", "in"), ("name", "out"), ("name", "opt")):
        word = t.take("name")
        if word == "opt":
            p.opt = True
        elif p.way:
            t.fail(f'a parameter has one direction, found "{word}" after "{p.way}".')
        else:
            p.way = word
    parts = []
    while t.peek()[0] == "name" or t.peek() == ("mark", "*"):
        if t.peek()[0] == "name" and t.peek(1) in (("mark", ","), ("mark", ")"), ("mark", "[")):
            break
        parts.append(t.items[t.at][1])
        t.at += 1
    p.name = t.take("name")
    if not parts:
        t.fail(f'parameter "{p.name}" has no type.')
    p.ctype = " ".join(parts).replace(" *", "*")
    if t.maybe("mark", "["):
        p.length = t.take("name")
        t.take("mark", "]")
    if p.span and not (p.length and p.way):
        t.fail(f'"bytes {p.name}" needs a direction and a length, as in "in bytes {p.name}[count]".')
    if not p.span and p.way == "out" and not p.ctype.endswith("*"):
        t.fail(f'"out {p.ctype} {p.name}" is not a pointer.')
    return p


def _word_args(t):
    args = []
    if t.maybe("mark", "("):
        while True:
            words = []
            while t.peek()[0] in ("name", "number"):
                words.append(t.items[t.at][1])
                t.at += 1
            if not words:
                t.fail(f'found "{t.peek()[1]}", expected an argument.')
            args.append(" ".join(words))
            if not t.maybe("mark", ","):
                break
        t.take("mark", ")")
    return args


def _call(t, room, doc):
    words = {}
    while t.maybe("mark", "@"):
        word = t.take("name")
        if word not in WORDS:
            t.fail(f'"@{word}" is no word of the notation; known are {", ".join("@" + w for w in sorted(WORDS))}.')
        if word in words:
            t.fail(f'"@{word}" is given twice.')
        args = _word_args(t)
        fewest, most = WORDS[word]
        if not fewest <= len(args) <= most:
            t.fail(f'"@{word}" takes {fewest} to {most} arguments, {len(args)} are given.')
        words[word] = args
    where = f"{t.path}:{t.items[t.at][2] if t.at < len(t.items) else t.last}"
    name = t.take("name")
    t.take("mark", "(")
    params = []
    if not t.maybe("mark", ")"):
        params.append(_param(t))
        while t.maybe("mark", ","):
            params.append(_param(t))
        t.take("mark", ")")
    return Call(name, room, where, params, words, " ".join(doc))


def parse(path, text):
    """Parses one file's text; returns ((room, title), [Call])."""
    t = _Tokens(path, text)
    t.take("name", "room")
    room = t.take("name")
    title = t.take("string").strip('"')
    calls, doc = [], []
    while t.peek()[0] != "end":
        if t.peek()[0] == "doc":
            doc.append(t.take("doc")[3:].strip())
            continue
        calls.append(_call(t, room, doc))
        doc = []
    return (room, title), calls


def check(api):
    """What one file alone cannot show: numbers and names are unique, every call says how it travels."""
    by_name, by_op = {}, {}
    for c in api.calls:
        if c.name in by_name:
            raise ApiError(f"{c.where}: {c.name} is described already at {by_name[c.name].where}.")
        by_name[c.name] = c
        ways = [w for w in ("op", "local", "refuse") if w in c.words]
        if len(ways) != 1:
            raise ApiError(f"{c.where}: {c.name} needs exactly one of @op, @local, @refuse, {len(ways)} are given.")
        if c.oneway and c.op is None:
            raise ApiError(f"{c.where}: {c.name} is @oneway and has no @op.")
        names = [p.name for p in c.params]
        for p in c.params:
            if names.count(p.name) > 1:
                raise ApiError(f'{c.where}: {c.name} has two parameters "{p.name}".')
            if p.length and p.length not in names:
                raise ApiError(f'{c.where}: the length "{p.length}" of {c.name} is no parameter of it.')
        if c.stream and c.stream not in names:
            raise ApiError(f'{c.where}: "@stream({c.stream})" names no parameter of {c.name}.')
        if c.ask:
            if c.ask[0] not in ASKS:
                raise ApiError(f'{c.where}: "@ask({c.ask[0]} ...)" is not one of {", ".join(sorted(ASKS))}.')
            if len(c.ask) != 2 or not (c.ask[1] in names or c.ask[1].isdigit()):
                raise ApiError(f'{c.where}: "@ask" of {c.name} needs a question and a parameter or number.')
        if c.op is not None:
            if not 0 < c.op < 0x10000:
                raise ApiError(f"{c.where}: {c.name} has number {c.op:#x}, expected 0x0001 to 0xffff.")
            if c.op in by_op:
                raise ApiError(f"{c.where}: number {c.op:#06x} of {c.name} is taken by {by_op[c.op].name}.")
            by_op[c.op] = c
            if c.oneway and any(p.way == "out" for p in c.params):
                raise ApiError(f"{c.where}: {c.name} is @oneway and has an out parameter.")
            for p in c.params:
                if not p.way and "*" in p.ctype:
                    raise ApiError(f'{c.where}: pointer "{p.name}" of {c.name} travels and has no direction.')
        if not c.wire_only and "was" not in c.words:
            raise ApiError(f"{c.where}: {c.name} has no @was(base, version).")
        if "twin" in c.words and c.words["twin"][0] not in ("_ptsz", "_ptds"):
            raise ApiError(f'{c.where}: "@twin" of {c.name} is neither _ptsz nor _ptds.')


def load(folder):
    """Reads every `.api` file of a folder and checks the whole."""
    rooms, calls = [], []
    for path in sorted(pathlib.Path(folder).glob("*.api")):
        room, found = parse(str(path), path.read_text())
        rooms.append(room)
        calls += found
    api = Api(rooms, calls)
    check(api)
    return api
