"""HLO text -> Module: one pass of a cursor over the text, each instruction one match and one match an attribute.

XLA prints operands and called computations before what uses them; that is checked, so nothing in a Module dangles and
nothing in it runs in circles.
"""

from __future__ import annotations

from collections.abc import Container

from chipwise.compiled.hlo.lexical import BRACES, NAME, PARENS, SHAPE, STRING, VALUE, NotHlo, compiled, refuse
from chipwise.compiled.hlo.module import CALLING, Computation, Frame, Instruction, Module, StackFrames
from chipwise.compiled.hlo.shape import Shape, parse_shape
from chipwise.compiled.hlo.values import decode, unquote

_HEADER = compiled(rf"\s*HloModule\s+%?({NAME})")
_ATTRIBUTE = compiled(rf",\s*([a-zA-Z_][\w\-]*)=({VALUE})")
_TABLE = compiled(r"\s*(FileNames|FunctionNames|FileLocations|StackFrames)[ \t]*\n")
_ROW = compiled(rf"[ \t]*(\d{{1,9}})[ \t]+({STRING}|{BRACES})[ \t]*\n")
_COMPUTATION = compiled(rf"\s*(ENTRY\s+)?%?({NAME})\s*(?:{PARENS}\s*->\s*{SHAPE}\s*)?\{{[ \t]*\n")
_INSTRUCTION = compiled(rf"\s*(ROOT\s+)?%?({NAME})\s*=\s*({SHAPE})\s+([a-z][\w\-]*)({PARENS})")
_OPERAND = compiled(rf"%({NAME})")
_BARE_OPERAND = compiled(rf"(?:^|,)(?:\s|/\*[^*]*\*/)*(?:{SHAPE}\s+)?({NAME})\s*(?=,|$)")
_CLOSE = compiled(r"\s*\}")
_LINE_END = compiled(r"[ \t]*(?:\n|$)")
_BLANK = compiled(r"\s*")
_LITERALS = frozenset({"constant", "parameter", "iota"})


def parse(text: str) -> Module:
    """The module `text` spells; NotHlo, in one line that names the line of the text, where it is not HLO."""
    return _Parser(text).module()


class _Parser:
    """The cursor, and what is shared by the whole module: shapes already seen, and stack frames."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self.shapes: dict[str, Shape] = {}
        self.frames = StackFrames()
        self.computations: dict[str, Computation] = {}
        self.names: set[str] = set()  # of the instructions so far in this computation

    def module(self) -> Module:
        header = _HEADER.match(self.text)
        if header is None:
            raise refuse(self.text, 0, "HloModule and its name")
        self.position = header.end()
        raw = self.attributes()
        self.frames = self.tables()
        entry = None
        end = len(self.text)
        while self.after_blanks() < end:
            start = self.position
            computation = self.computation()
            if computation.name in self.computations:
                raise refuse(self.text, start, f"a new name, not a second computation {computation.name}")
            self.computations[computation.name] = computation
            if computation.is_entry:
                entry = computation
        if entry is None:
            raise refuse(self.text, end, "an ENTRY computation")
        return Module(header[1], raw, self.computations, entry)

    def after_blanks(self) -> int:
        blank = _BLANK.match(self.text, self.position)
        if blank is not None:
            self.position = blank.end()
        return self.position

    def attributes(self) -> dict[str, str]:
        """The `, key=value` pairs up to the end of the line."""
        text, position, match = self.text, self.position, _ATTRIBUTE.match
        attributes: dict[str, str] = {}
        attribute = match(text, position)
        while attribute is not None:
            key, value = attribute.groups()
            attributes[key] = value
            position = attribute.end()
            attribute = match(text, position)
        end = _LINE_END.match(text, position)
        if end is None:
            raise refuse(text, position, "`, attribute=value` or the end of the line")
        self.position = end.end()
        return attributes

    def tables(self) -> StackFrames:
        """The tables of source locations that newer compilers print before the computations."""
        rows: dict[str, dict[int, str]] = {}
        while (title := _TABLE.match(self.text, self.position)) is not None:
            self.position = title.end()
            table = rows.setdefault(title[1], {})
            while (row := _ROW.match(self.text, self.position)) is not None:
                table[int(row[1])] = row[2]
                self.position = row.end()
        return _stack_frames(rows)

    def computation(self) -> Computation:
        header = _COMPUTATION.match(self.text, self.position)
        if header is None:
            raise refuse(self.text, self.position, "a computation: `%name (parameters) -> shape {`")
        self.position = header.end()
        instructions: list[Instruction] = []
        self.names = set()
        while (close := _CLOSE.match(self.text, self.position)) is None:
            instructions.append(self.instruction())
        if not instructions:
            raise refuse(self.text, self.position, f"an instruction in {header[2]}")
        self.position = close.end()
        thread = self.attributes().get("execution_thread", '"main"')
        roots = [i for i in instructions if i.is_root] or instructions[-1:]
        return Computation(header[2], tuple(instructions), roots[0], header[1] is not None, unquote(thread))

    def instruction(self) -> Instruction:
        text, position = self.text, self.position
        head = _INSTRUCTION.match(text, position)
        if head is None:
            raise refuse(text, self.after_blanks(), "an instruction: `%name = shape opcode(operands)`")
        root, name, spelled, opcode, arguments = head.groups()
        shape = self.shapes.get(spelled)
        if shape is None:
            try:
                shape = self.shapes[spelled] = parse_shape(spelled)
            except NotHlo as error:
                raise refuse(text, head.start(3), error.accepted) from error
        arguments = arguments[1:-1]
        operands: tuple[str, ...]
        if opcode in _LITERALS or not arguments:
            operands = ()
        elif "%" in arguments:
            operands = tuple(_OPERAND.findall(arguments))
        else:
            operands = tuple(_BARE_OPERAND.findall(arguments))
        if name in self.names:
            raise refuse(text, head.start(2), f"a new name, not a second {name}")
        if not self.names.issuperset(operands):
            raise refuse(text, head.start(5), f"operands defined above, not {_first_missing(operands, self.names)}")
        self.names.add(name)
        self.position = head.end()
        raw = self.attributes()
        instruction = Instruction(name, shape, opcode, arguments, operands, raw, root is not None, self.frames)
        if not CALLING.isdisjoint(raw) and not self.computations.keys() >= set(instruction.calls):
            missing = _first_missing(instruction.calls, self.computations)
            raise refuse(text, head.start(2), f"a call of a computation defined above, not {missing}")
        return instruction


def _first_missing(names: tuple[str, ...], computations: Container[str]) -> str:
    return next(name for name in names if name not in computations)


def _stack_frames(rows: dict[str, dict[int, str]]) -> StackFrames:
    files = {i: unquote(text) for i, text in rows.get("FileNames", {}).items()}
    functions = {i: unquote(text) for i, text in rows.get("FunctionNames", {}).items()}
    locations: dict[int, Frame] = {}
    for i, text in rows.get("FileLocations", {}).items():
        row = _numbers(text)
        file, function = files.get(row.get("file_name_id", 0), ""), functions.get(row.get("function_name_id", 0), "")
        locations[i] = Frame(file, row.get("line", 0), function)
    frames = {i: _numbers(text) for i, text in rows.get("StackFrames", {}).items()}
    # Frames without a parent print 0 in some versions of XLA; in others every id is printed one too high.
    high = bool(frames) and all(row.get("parent_frame_id", 0) > 0 for row in frames.values())
    return StackFrames(
        {
            i: (locations[row["file_location_id"]], row.get("parent_frame_id", 0) - high)
            for i, row in frames.items()
            if row.get("file_location_id") in locations
        }
    )


def _numbers(text: str) -> dict[str, int]:
    row = decode(text)
    return {k: v for k, v in row.items() if isinstance(v, int)} if isinstance(row, dict) else {}
