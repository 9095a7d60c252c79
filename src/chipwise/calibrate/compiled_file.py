"""The compilers' part of a calibration: one file beside the dated one, whose keys are fitted apart and merged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chipwise.catalog.calibration import COMPILED
from chipwise.errors import BrokenFile


def compiled_path(folder: Path, date: str) -> Path:
    """Where a date's compiled part lies."""
    return folder / (date + COMPILED)


def merge(path: Path, changes: Mapping[str, Any]) -> Path:
    """Replace some keys of the file and keep the others; mappings are merged one level down.

    Written under a temporary name first.
    """
    content: dict[str, Any] = _read(path)
    for key, value in changes.items():
        old = content.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        content[key] = {**old, **value} if both and old is not None else value
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".tmp")
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    scratch.write_text(text + "\n", encoding="utf-8")
    scratch.replace(path)
    return path


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BrokenFile("calibration", path.name, f"a JSON file written by calibrate ({error})") from None
    if not isinstance(found, dict):
        raise BrokenFile("calibration", path.name, f"a JSON object (found {type(found).__name__})")
    return found
