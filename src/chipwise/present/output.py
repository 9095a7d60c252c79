"""Results on stdout or in a file: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chipwise.errors import InputError
from chipwise.io.atomic import atomic_write
from chipwise.io.printable import csv_cell, json_escaped, printable_lines
from chipwise.present.blocks import Block
from chipwise.present.result import Result
from chipwise.present.text import plain
from chipwise.present.width import WIDTH


class PipeClosed(Exception):
    """The reader of stdout went away, as `head` does. No OSError: typer would leave with 1 on those."""


def ready(out: Path | None, field: str = "out") -> None:
    """Refuse a file in no folder before the work that would fill it."""
    if out is not None and not out.resolve().parent.is_dir():
        raise InputError(field, str(out), "a file in a folder that exists")


def show(
    result: Result, output: str = "table", out: Path | None = None, blocks: Callable[[], Sequence[Block]] | None = None
) -> None:
    """Print a result in a format, or write it to a file; `blocks`: what people see of it, where not the usual."""
    if output == "json":
        emit_json(result.to_dict(), out)
    elif output == "csv":
        rows = result.flat_rows()
        if rows or not result.CSV_HEADER:
            emit_csv(rows, out)
        else:
            write(",".join(result.CSV_HEADER) + "\n", out)
    else:
        emit((blocks or result.blocks)(), out)


def emit(blocks: Sequence[Block], out: Path | None = None) -> None:
    """Print blocks, or write them to a file."""
    width = WIDTH.get()
    if out is None and sys.stdout.isatty():
        from chipwise.present.terminal import Terminal, draw

        try:
            draw(blocks, Terminal.of(sys.stdout))
        except BrokenPipeError:
            raise PipeClosed from None
    elif width:
        from chipwise.present.terminal import styled

        write("".join(f"{line}\n" for block in blocks for line, _ in styled(block, width)), out)
    else:
        write("\n".join(plain(block) for block in blocks) + "\n", out)


def emit_json(value: Any, out: Path | None = None) -> None:
    """Print a JSON document, or write it to a file."""
    write(json_escaped(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)) + "\n", out)


def emit_csv(rows: Sequence[Mapping[str, Any]], out: Path | None = None, field: str = "out") -> None:
    """Print rows as CSV with a header, or write them to the file that the option `field` names.

    Names in them are anybody's: a cell that a spreadsheet would compute is marked as text.
    """
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(value) for name, value in row.items()} for row in rows)
    write(buffer.getvalue(), out, field)


def write(text: str, out: Path | None, field: str = "out") -> None:
    """Text to stdout, or to a file that is whole or absent; a terminal is shown nothing that it might obey."""
    if out is None:
        try:
            sys.stdout.write(printable_lines(text) if sys.stdout.isatty() else text)
            sys.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None
        return
    atomic_write(text.encode("utf-8"), out, field)
