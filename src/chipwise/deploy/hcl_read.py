"""Terraform's language read as far as its structure goes: blocks, arguments, and expressions as they are written.

A reader of our own: what `deploy check` asks (is the argument there, is it a block, what is its plain value) needs no
evaluation, and a parser of the whole language would be a dependency for that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from chipwise.errors import BrokenFile

WORD = re.compile(r"[A-Za-z_][\w-]*")
HEREDOC = re.compile(r"<<-?\s*([A-Za-z_]\w*)\n")
PAIRS = {"(": ")", "[": "]", "{": "}"}
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class NotPlain:
    """A value that only Terraform can tell: a reference, a call, a text with parts to be filled in."""


NOT_PLAIN = NotPlain()
Plain = str | float | bool | list["Plain"] | None | NotPlain


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument and its expression."""

    name: str
    text: str
    line: int

    @property
    def value(self) -> Plain:
        """Its value where it is plain."""
        return plain(self.text)


@dataclass(slots=True)
class HclBlock:
    """A block with what is in it."""

    kind: str
    labels: tuple[str, ...]
    line: int
    arguments: dict[str, Argument] = field(default_factory=dict)
    blocks: list[HclBlock] = field(default_factory=list)

    def of(self, kind: str) -> Iterator[HclBlock]:
        """The blocks of a kind in it."""
        return (block for block in self.blocks if block.kind == kind)

    def value(self, name: str) -> Plain:
        """The plain value of an argument; None where it is not there."""
        return self.arguments[name].value if name in self.arguments else None


def plain(text: str) -> Plain:
    """The value of an expression that is a literal.

    >>> plain('"a"'), plain("4"), plain("true"), plain('["a", "b"]'), plain("var.a") is NOT_PLAIN
    ('a', 4.0, True, ['a', 'b'], True)
    """
    if text.startswith('"') and text.endswith('"') and "${" not in text and "%{" not in text:
        try:
            value = json.loads(text)
        except ValueError:
            return NOT_PLAIN
        return value if isinstance(value, str) else NOT_PLAIN
    if NUMBER.fullmatch(text):
        return float(text)
    if text in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[text]
    if text.startswith("[") and text.endswith("]") and not set(text[1:-1]) & set("[{("):
        parts = [plain(part.strip()) for part in text[1:-1].split(",") if part.strip()]
        return NOT_PLAIN if NOT_PLAIN in parts else parts
    return NOT_PLAIN


def read_hcl(text: str, name: str) -> HclBlock:
    """A file as a block without a kind; a `BrokenFile` names the line that can't be read."""
    reader = _Reader(text, name)
    root = HclBlock("", (), 1)
    try:
        reader.body(root, "")
    except RecursionError:
        raise BrokenFile(name, "blocks without end", "a few levels") from None
    return root


@dataclass(slots=True)
class _Reader:
    text: str
    name: str
    at: int = 0

    def body(self, block: HclBlock, end: str) -> None:
        """Everything up to the end of the block, or of the file."""
        while True:
            self.skip(newlines=True)
            if self.at >= len(self.text):
                if end:
                    self.fail("the end of the file", f"{end} of the block that begins on line {block.line}")
                return
            if end and self.text[self.at] == end:
                self.at += 1
                return
            self.statement(block)

    def statement(self, block: HclBlock) -> None:
        """An argument or a block."""
        line = self.line()
        name = self.word()
        self.skip()
        if self.text[self.at : self.at + 1] == "=" and self.text[self.at + 1 : self.at + 2] != "=":
            self.at += 1
            if name in block.arguments:
                self.fail(name, "each argument once in a block")
            block.arguments[name] = Argument(name, self.expression(), line)
            return
        labels = []
        while self.text[self.at : self.at + 1] != "{":
            labels.append(self.label())
            self.skip()
        self.at += 1
        inner = HclBlock(name, tuple(labels), line)
        block.blocks.append(inner)
        self.body(inner, "}")

    def expression(self) -> str:
        """An expression, to the end of its line or of the block on the same line."""
        self.skip()
        start, open_brackets = self.at, list[str]()
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.string()
                continue
            heredoc = HEREDOC.match(self.text, self.at)
            if heredoc:
                self.heredoc(heredoc)
                continue
            if char in "#" or self.text.startswith(("//", "/*"), self.at):
                if not open_brackets and not self.text.startswith("/*", self.at):
                    break
                self.comment()
                continue
            if char in PAIRS:
                open_brackets.append(PAIRS[char])
            elif char in ")]}":
                if not open_brackets:
                    break
                if open_brackets.pop() != char:
                    self.fail(char, "brackets in pairs")
            elif char == "\n" and not open_brackets:
                break
            self.at += 1
        if open_brackets:
            self.fail("the end of the file", f"{open_brackets[-1]} of an expression")
        text = self.text[start : self.at].strip()
        if not text:
            self.fail("nothing", "a value after =")
        return text

    def string(self) -> None:
        """A text, with whatever is filled in."""
        start, depth = self.line(), 0
        self.at += 1
        while self.at < len(self.text):
            if self.text[self.at] == "\\" and not depth:
                self.at += 2
            elif self.text.startswith("$${", self.at):
                self.at += 3
            elif self.text.startswith("${", self.at):
                depth += 1
                self.at += 2
            elif depth and self.text[self.at] == "}":
                depth -= 1
                self.at += 1
            elif depth and self.text[self.at] == '"':
                self.string()
            elif not depth and self.text[self.at] == '"':
                self.at += 1
                return
            elif self.text[self.at] == "\n" and not depth:
                break
            else:
                self.at += 1
        raise BrokenFile(f"{self.name} line {start}", "a text without its end", '" on the same line')

    def heredoc(self, begin: re.Match[str]) -> None:
        """A text of several lines, to the word that ends it."""
        end = re.compile(rf"^[ \t]*{begin[1]}[ \t]*$", re.MULTILINE).search(self.text, begin.end())
        if end is None:
            self.fail(begin[1], "the same word alone on a line, where the text ends")
        self.at = end.end()

    def label(self) -> str:
        """A label of a block."""
        if self.text[self.at : self.at + 1] == '"':
            start = self.at
            self.string()
            return self.text[start + 1 : self.at - 1]
        return self.word()

    def word(self) -> str:
        """A name."""
        match = WORD.match(self.text, self.at)
        if match is None:
            self.fail(self.text[self.at : self.at + 10].split("\n")[0] or "the end of a line", "an argument or a block")
        self.at = match.end()
        return match[0]

    def skip(self, newlines: bool = False) -> None:
        """Blanks and comments."""
        while self.at < len(self.text):
            if self.text[self.at] in (" \t\r\n" if newlines else " \t\r"):
                self.at += 1
            elif newlines and (self.text[self.at] == "#" or self.text.startswith(("//", "/*"), self.at)):
                self.comment()
            else:
                return

    def comment(self) -> None:
        """To the end of a comment."""
        mark = "*/" if self.text.startswith("/*", self.at) else "\n"
        end = self.text.find(mark, self.at)
        self.at = len(self.text) if end < 0 else end + (2 if mark == "*/" else 0)

    def line(self) -> int:
        """The line at which the reader is."""
        return self.text.count("\n", 0, self.at) + 1

    def fail(self, what: str, accepted: str) -> NoReturn:
        """Refuse what is there."""
        raise BrokenFile(f"{self.name} line {self.line()}", what, accepted)
