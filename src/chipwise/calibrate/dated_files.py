"""The dated files of a calibration, each written atomically; the compilers' part is merged key by key."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chipwise.catalog.calibration import COMPILED
from chipwise.errors import BrokenFile
from chipwise.io.atomic import atomic_write


def write_dated(folder: Path, date: str, parts: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """Write the parts of a calibration, by the ends of their names, under their date; packed where they end in .gz."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(folder / f"{date}{suffix}", content) for suffix, content in parts.items()]


def _write(path: Path, content: Mapping[str, Any]) -> Path:
    data = (json.dumps(content, separators=(",", ":"), sort_keys=True) + "\n").encode()
    atomic_write(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data, path, "calibration")
    return path


def compiled_path(folder: Path, date: str) -> Path:
    """Where a date's compiled part lies."""
    return folder / (date + COMPILED)


def merge(path: Path, changes: Mapping[str, Any]) -> Path:
    """Replace some keys of the compiled part and keep the others; mappings are merged one level down."""
    content = _read(path)
    for key, value in changes.items():
        old = content.get(key)
        content[key] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    path.parent.mkdir(parents=True, exist_ok=True)
    return _write(path, content)


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BrokenFile("calibration", path.name, f"a JSON file written by calibrate ({error})") from None
    if not isinstance(content, dict):
        raise BrokenFile("calibration", path.name, f"a JSON object (found {type(content).__name__})")
    return content


def rounded(value: Any) -> Any:
    """Five significant digits, which are more than the data hold, of every number in a document.

    >>> rounded({"a": [1.2345678, 3]})
    {'a': [1.2346, 3]}
    """
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, Mapping):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(part) for part in value]
    return value
