"""What attempts that came to nothing have printed last, and where the rest of it lies."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.cli.jobs_blocks import safe
from chipwise.present.blocks import Block, Text

if TYPE_CHECKING:
    from chipwise.route.ledger import Ledger
    from chipwise.route.ledger.records import AttemptRow

TOLD = frozenset({"failed", "lost"})  # of other attempts the output says nothing that is not known
BYTES, LINES, WIDTH = 4096, 3, 160  # read from the end; shown of that: a traceback's last words
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")  # colours, titles


@dataclass(frozen=True, slots=True)
class Output:
    """The output of an attempt."""

    path: str
    last: tuple[str, ...]  # lines, harmless and short; none where it printed nothing


def outputs(book: Ledger, attempts: Sequence[AttemptRow]) -> dict[str, Output]:
    """The outputs, by attempt, of those that failed or were lost and whose folders are seen from here."""
    wanted = [attempt.id for attempt in attempts if attempt.state in TOLD]
    homes = dict.fromkeys(book.homes().values()) if wanted else {}
    out = {}
    for attempt in wanted:
        for home in homes:
            path = Path(home) / "attempts" / attempt / "output"
            last = _last(path)
            if last is not None:
                out[attempt] = Output(str(path), last)
                break
    return out


def lines(attempts: Sequence[AttemptRow], found: Mapping[str, Output]) -> list[str]:
    """The outputs for people."""
    out = []
    for attempt in attempts:
        if attempt.id in found:
            here = found[attempt.id]
            out.append(f"attempt {attempt.number}: {safe(here.path)}" + ("" if here.last else " (empty)"))
            out += [f"  {line}" for line in here.last]
    return out


def blocks(attempts: Sequence[AttemptRow], found: Mapping[str, Output]) -> list[Block]:
    """The outputs under a heading; nothing where there is none."""
    told = lines(attempts, found)
    return [Text("Output", heading=True), *(Text(f"  {line}") for line in told)] if told else []


def _last(path: Path) -> tuple[str, ...] | None:
    """The last lines of a file; None where there is no file. A program may have put anything in its place."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # not on this machine, removed after --keep, or another user's
        return None
    with os.fdopen(handle, "rb") as file:
        there = os.fstat(handle)
        if not stat.S_ISREG(there.st_mode):
            return None
        file.seek(max(0, there.st_size - BYTES))
        text = ESCAPES.sub("", file.read(BYTES).decode("utf-8", "replace"))
    said = [safe(line.strip(), WIDTH) for line in text.splitlines() if line.strip()]
    return tuple(said[-LINES:])
