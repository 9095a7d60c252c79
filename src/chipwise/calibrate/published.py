"""The published rows that calibrations are fitted to."""

from __future__ import annotations

import csv
from pathlib import Path

from chipwise.errors import BrokenFile


def published_rows(root: Path, name: str) -> list[dict[str, str]]:
    """The rows of one CSV file under `root`."""
    path = root / "rows" / name
    try:
        with path.open(encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise BrokenFile("validation", path.name, f"the published rows ({error.strerror})") from None
