"""The last lines that failed or lost attempts printed, and the file that holds the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chipwise.present.blocks import Block, section
from chipwise.present.safe import safe
from chipwise.route.attempt_files import Unreadable, read_bounded
from chipwise.route.backend import BackendDown
from chipwise.route.backends.named import attempt_folder
from chipwise.route.ledger import Ledger, LedgerView, RemoteLedger
from chipwise.route.ledger.records import AttemptRow

FAILURES = frozenset({"failed", "lost"})  # of other attempts the output adds nothing
BYTES, LINES, WIDTH = 4096, 3, 160  # read from the end; shown of that: a traceback's last words
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")  # colors, titles


@dataclass(frozen=True, slots=True)
class AttemptOutput:
    """The output of an attempt."""

    path: str
    last: tuple[str, ...]  # lines, harmless and short; none where it printed nothing


def read_outputs(ledger: LedgerView, attempts: Sequence[AttemptRow]) -> dict[str, AttemptOutput]:
    """The outputs, by attempt of one job, of those that failed or were lost and whose folders this machine sees."""
    wanted = [attempt.id for attempt in attempts if attempt.state in FAILURES]
    if isinstance(ledger, RemoteLedger):  # the folders are the service's to read
        printed = ledger.printed(attempts[0].job_id) if wanted else {}
        return {attempt: AttemptOutput(path, last) for attempt, (path, last) in printed.items()}
    assert isinstance(ledger, Ledger)
    folders = dict.fromkeys(ledger.backend_folders().values()) if wanted else {}
    outputs = {}
    for attempt in wanted:
        for folder in folders:
            path = attempt_folder(Path(folder), attempt) / "output"
            last = _last(path)
            if last is not None:
                outputs[attempt] = AttemptOutput(str(path), last)
                break
    return outputs


def output_blocks(attempts: Sequence[AttemptRow], outputs: Mapping[str, AttemptOutput]) -> list[Block]:
    """The outputs for people; nothing where there is none."""
    lines = []
    for attempt in attempts:
        output = outputs.get(attempt.id)
        if output is not None:
            lines.append(f"attempt {attempt.number}: {safe(output.path)}" + ("" if output.last else " (empty)"))
            lines += [f"  {line}" for line in output.last]
    return section("Output", lines)


def _last(path: Path) -> tuple[str, ...] | None:
    """The last lines of a file; None where there is no file. A program may have put anything in its place."""
    try:
        data = read_bounded(path, BYTES, last=True)
    except (Unreadable, BackendDown):  # removed after --keep, another user's, or nothing to show
        return None
    if data is None:
        return None
    text = ESCAPES.sub("", data.decode("utf-8", "replace"))
    lines = [safe(line.strip(), WIDTH) for line in text.splitlines() if line.strip()]
    return tuple(lines[-LINES:])
