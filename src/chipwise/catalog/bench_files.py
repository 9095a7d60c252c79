"""What `calibrate bench` wrote about chips: dated files in the package, and in the user's data folder before them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from chipwise.errors import BrokenFile, InputError
from chipwise.io.atomic import atomic_write
from chipwise.io.files import MAX_BYTES
from chipwise.io.paths import data_folder
from chipwise.io.regular_file import read_bytes

SCHEMA = "chipwise.bench-calibration/1"


def packaged_folder() -> Path:
    """Where the files that come with chipwise lie."""
    return Path(str(files("chipwise.catalog"))) / "data" / "calibration" / "bench"


def user_folder() -> Path:
    """Where a user's own calibrations lie."""
    return data_folder() / "calibration"


def read(path: Path) -> Mapping[str, Any]:
    """One file, refused with the reason where it is none of ours."""
    try:
        raw = json.loads(read_bytes(path, MAX_BYTES, "calibration"))
    except (ValueError, RecursionError) as error:
        accepted = f"a JSON file written by `chipwise calibrate bench` ({error})"
        raise BrokenFile("calibration", str(path), accepted) from None
    schema = raw.get("schema") if isinstance(raw, dict) else type(raw).__name__
    if schema != SCHEMA:
        accepted = f"schema {SCHEMA} (found {schema}); calibrate again from the bench file"
        raise BrokenFile("calibration", str(path), accepted)
    for name in ("chip", "framework", "date", "tables", "steps"):
        if name not in raw:
            raise BrokenFile("calibration", str(path), f"a file with the field {name!r}")
    document: Mapping[str, Any] = raw
    return document


def write(folder: Path, raw: Mapping[str, Any]) -> Path:
    """Keep a calibration under its chip, framework and date, atomically."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("folder", str(folder), f"a folder that can be written to ({error.strerror})") from None
    path = folder / f"{raw['chip']}-{raw['framework']}-{raw['date']}.json"
    text = json.dumps({"schema": SCHEMA, **raw}, separators=(",", ":"), sort_keys=True)
    atomic_write((text + "\n").encode("utf-8"), path, "folder")
    return path


def all_files() -> Iterator[Path]:
    """Every calibration, the user's first, the newest first."""
    for folder in (user_folder(), packaged_folder()):
        if folder.is_dir():
            yield from sorted(folder.glob("*.json"), key=lambda path: path.stem[-10:], reverse=True)


def read_all(chip: str, framework: str = "torch") -> list[Mapping[str, Any]]:
    """The calibrations of a chip under a framework: the user's newest first, the package's last."""
    documents: list[Mapping[str, Any]] = []
    for path in all_files():
        if path.name.startswith(f"{chip}-{framework}-"):
            raw = read(path)
            if (raw["chip"], raw["framework"]) != (chip, framework):
                raise BrokenFile(
                    "calibration",
                    str(path),
                    f"the calibration of {chip} with {framework} (it is of {raw['chip']} with {raw['framework']})",
                )
            documents.append({**raw, "path": str(path)})
    return documents
