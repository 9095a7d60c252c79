"""Compile published TPU rows and keep their schedules under validation/compiled.

    python scripts/compile_rows.py [ROW ...]

With no row, every row whose schedule is kept and no longer fits the reference programs is compiled again, and files
that belong to no row are removed. A step with a tuned VMEM limit takes the compiler 15-25 minutes of a core.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from chipwise.compiled.job import Compiled, Job, digest
from chipwise.errors import ChipwiseError
from chipwise.validate import training_rows
from chipwise.validate.compiled import compile_now, file_of, folder, store, stored
from chipwise.validate.compiled_rows import job_of

ROWS = Path(__file__).parents[1] / "validation" / "rows" / "training.csv"


def jobs() -> dict[str, tuple[Job, list[str]]]:
    """The jobs the published rows ask for, by digest, each with the rows that share it."""
    found: dict[str, tuple[Job, list[str]]] = {}
    with ROWS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if "TPU" in row["accelerator"] and training_rows.eligible(row)]
    for text in rows:
        try:
            job = job_of(training_rows.read(text), text)
        except ChipwiseError:
            continue
        found.setdefault(digest(job.as_json()), (job, []))[1].append(text["id"])
    return found


def kept() -> Iterator[tuple[Path, set[str]]]:
    """Each kept file with the rows it was made for."""
    for path in sorted(folder().glob("*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield path, set(json.load(file)["rows"])


def main(wanted: set[str]) -> int:
    """Compile and keep; say what each took or why it was refused."""
    known, failed = jobs(), 0
    unknown = wanted - {row for _, rows in known.values() for row in rows}
    if unknown:
        words = ", ".join(sorted(unknown))
        print(f"ROW: {words} is not accepted; expected TPU rows that can be compiled", file=sys.stderr)
        return 2
    belonging = {file_of(job) for job, _ in known.values()}
    stale = [(path, rows) for path, rows in kept() if path not in belonging]
    for job, rows in known.values():
        asked = wanted & set(rows) or (not wanted and any(old & set(rows) for _, old in stale))
        if not asked or stored(job) is not None:
            continue
        print(f"{rows[0]}: compiling for {job.target}", file=sys.stderr, flush=True)
        made = compile_now(job)
        if isinstance(made, Compiled):
            print(f"{rows[0]}: {made.seconds:.0f} s -> {store(job, made, rows).name}", flush=True)
        else:
            failed += 1
            print(f"{rows[0]}: refused: {made.reason}", flush=True)
    for path, _ in stale:
        if not wanted:
            path.unlink()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
