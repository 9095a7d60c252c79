"""Lines of a log as somebody would read them: without colors, each state of a progress bar a line of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from chipwise.errors import BrokenFile
from chipwise.io.regular_file import opened

MAX_LINE_BYTES = 65_536  # the longest line of a log that is read; what is longer holds data, not words
MAX_DOCUMENT_BYTES = 10_000_000  # of what may be one JSON document: as of every JSON file (io/files.py)
STDIN = "-"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")
_BARE_COLORS = re.compile(r"\[(?:\d{1,3}(?:;\d{1,3})*)?m")  # where a file has lost the escape characters
_CUT = re.compile(r"(?<![\d,])[\d,]*+(?:\.|[eE][-+]?)$")  # a number that ends with the file


def lines_of(source: str) -> Iterator[str]:
    """The lines of a file (gzip as well) or of standard input, read piece by piece."""
    with _opened(source) as stream:
        try:
            yield from clean(_pieces(stream))
        except (OSError, EOFError) as error:
            raise BrokenFile("log", source, f"a readable file ({error})") from None


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Lines, longer ones in pieces; but for a first line that may be a document."""
    begun = False
    while piece := stream.readline(MAX_LINE_BYTES):
        if not begun and piece.strip():
            begun = True
            if piece.lstrip().startswith(b"{") and not piece.endswith(b"\n"):
                piece += stream.readline(MAX_DOCUMENT_BYTES)
        yield piece


def clean(raw: Iterable[bytes]) -> Iterator[str]:
    r"""Text without escapes; a carriage return ends a line too, as progress bars write.

    >>> list(clean([b"\x1b[32mstep:  4\x1b[0m\n", b" 1%|1/9\r 2%|2/9\n", b"seconds: 3."]))
    ['step:  4', ' 1%|1/9', ' 2%|2/9', 'seconds: ']
    """
    for piece in raw:
        whole = piece.endswith((b"\n", b"\r"))
        text = piece.decode("utf-8", "replace").rstrip("\r\n")
        if "\x1b" in text:
            text = _ESCAPES.sub("", text)
        if "m" in text and "[" in text:
            text = _BARE_COLORS.sub("", text)
        for line in text.split("\r"):
            yield line if whole else _CUT.sub("", line)


@contextmanager
def _opened(source: str) -> Iterator[BinaryIO]:
    if source == STDIN:
        yield sys.stdin.buffer
        return
    path = Path(source)
    with opened(path, "log", packed=path.suffix == ".gz") as stream:
        yield stream
