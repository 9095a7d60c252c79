"""The bench file: read through a schema, written atomically. docs/bench-file.md describes every field."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from chipwise.bench.frameworks.interface import Device
from chipwise.bench.measurement import COLUMNS, MORE_COLUMNS, Measurement, Summary, Watched
from chipwise.errors import NOTHING, BrokenFile, InputError
from chipwise.io.atomic import atomic_write
from chipwise.io.regular_file import read_bytes
from chipwise.io.schema_errors import translate
from chipwise.ops.point import KINDS, Point
from chipwise.present.blocks import Block
from chipwise.present.result import Result
from chipwise.units import GiB

if TYPE_CHECKING:
    from chipwise.bench.spec import PointSpec

SCHEMA = "chipwise.bench/1"
FIELD = "bench file"
MOST_BYTES = 256 * 2**20
_SIZES = tuple(dict.fromkeys(size for sizes in KINDS.values() for size in sizes))
_PLAIN = {f.name for f in fields(Measurement)} - {"point", "seconds", "watched"}


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What watched the device, and how it was set before the run."""

    source: str = ""
    reason: str = ""
    hz: float = 0.0
    settings: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, repr=False)
class BenchFile(Result):
    """Measurements of one device, with what is needed to read them."""

    VERB: ClassVar[str] = "bench show"
    CSV_HEADER: ClassVar[tuple[str, ...]] = (*COLUMNS, *MORE_COLUMNS)
    created: str  # UTC, such as 2026-11-15T08:30:00Z
    chipwise: str
    command: tuple[str, ...]
    device: Device
    chip: str  # the catalog's name of the device; "" where it has none
    environment: Mapping[str, str | float]
    frameworks: Mapping[str, Mapping[str, str]]
    telemetry: Telemetry
    points: tuple[Measurement, ...] = ()
    complete: bool = False
    elapsed_s: float = 0.0  # of the run; 0 where it wasn't noted
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The document, keys in the order that people read them."""
        return {
            "schema": SCHEMA,
            "created": self.created,
            "chipwise": self.chipwise,
            "command": list(self.command),
            "device": {**asdict(self.device), "chip": self.chip},
            "environment": dict(self.environment),
            "frameworks": {name: dict(versions) for name, versions in self.frameworks.items()},
            "telemetry": {**asdict(self.telemetry), "settings": dict(self.telemetry.settings)},
            "elapsed_s": self.elapsed_s,
            "complete": self.complete,
            "notes": list(self.notes),
            "points": [measurement_as_json(measurement) for measurement in self.points],
        }

    def of_framework(self, framework: str) -> BenchFile:
        """The file with that framework's points alone."""
        if framework not in self.frameworks:
            raise InputError("framework", framework, f"one of {', '.join(self.frameworks)}")
        return replace(self, points=tuple(point for point in self.points if point.framework == framework))

    def record(self) -> dict[str, Any]:
        """As JSON has it: the document with what its figures mean."""
        from chipwise.bench.view import file_record

        return file_record(self)

    def flat_rows(self) -> list[dict[str, Any]]:
        """For CSV and pandas: the usable points."""
        return rows(self)

    def blocks(self) -> list[Block]:
        """For people."""
        from chipwise.bench.view import file_blocks

        return file_blocks(self)


def measurement_as_json(m: Measurement) -> dict[str, Any]:
    """A measurement beside its point; what is unknown or empty is left out."""
    out: dict[str, Any] = {**m.point.as_json(), "framework": m.framework, "status": m.status}
    if m.reason:
        out["reason"] = m.reason
    if m.seconds is not None:
        out["seconds"] = {**asdict(m.seconds), "samples_s": list(m.seconds.samples_s)}
    counts = {"flops": m.flops, "moved_bytes": m.moved_bytes, "items": m.items, "params": m.params}
    out |= {name: value for name, value in counts.items() if value}
    out |= {name: value for name in ("peak_bytes", "error") if (value := getattr(m, name)) is not None}
    watched = {name: value for name, value in asdict(m.watched).items() if value not in (None, (), 0)}
    if "throttled" in watched:
        watched["throttled"] = list(watched["throttled"])
    return out | ({"watched": watched} if watched else {})


def measurement_from_json(data: Mapping[str, Any]) -> Measurement:
    """The measurement of a document's point."""
    from chipwise.bench.spec import PointSpec

    return _measurement(PointSpec.model_validate(data))


def point_from_json(data: Mapping[str, Any]) -> Point:
    """What `Point.as_json` wrote."""
    sizes = {name: int(data[name]) for name in KINDS[data["kind"]]}
    return Point(
        data["suite"],
        data["kind"],
        data["dtype"],
        sizes,
        bool(data.get("compile")),
        bool(data.get("remat")),
        bool(data.get("causal", True)),
        data.get("model", ""),
    )


def _measurement(spec: PointSpec) -> Measurement:
    point = point_from_json(
        spec.model_dump(include={*_SIZES, "suite", "kind", "dtype", "compile", "remat", "causal", "model"})
    )
    seconds = None
    if spec.seconds is not None:
        values = spec.seconds.model_dump()
        seconds = Summary(**{**values, "samples_s": tuple(values["samples_s"])})
    watched = spec.watched.model_dump()
    return Measurement(
        point,
        seconds=seconds,
        watched=Watched(**{**watched, "throttled": tuple(watched["throttled"])}),
        **spec.model_dump(include=_PLAIN),
    )


def read(path: Path) -> BenchFile:
    """A bench file; whatever is wrong with it is one line that names the file and the field."""
    raw = _document(path)
    schema = raw.get("schema")
    if schema != SCHEMA:
        accepted = f"schema {SCHEMA} (it says {schema!r})" if schema is not None else f"a bench file (schema {SCHEMA})"
        raise BrokenFile(FIELD, str(path), accepted)
    from pydantic import ValidationError

    from chipwise.bench.spec import FileSpec

    try:
        spec = FileSpec.model_validate(raw)
    except ValidationError as error:
        wrong = translate(error, FileSpec)
        accepted = (
            f"{wrong.field}: {wrong.accepted}" if wrong.value is not NOTHING else f"{wrong.field}, which is missing"
        )
        raise BrokenFile(FIELD, str(path), accepted) from None
    device = spec.device.model_dump()
    chip = device.pop("chip")
    return BenchFile(
        spec.created,
        spec.chipwise,
        tuple(spec.command),
        Device(**device),
        chip,
        spec.environment,
        spec.frameworks,
        Telemetry(**spec.telemetry.model_dump()),
        tuple(map(_measurement, spec.points)),
        spec.complete,
        spec.elapsed_s,
        tuple(spec.notes),
    )


def _document(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(read_bytes(path, MOST_BYTES, FIELD, packed=path.suffix == ".gz").decode("utf-8"))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}"
        raise BrokenFile(FIELD, str(path), f"whole JSON (it breaks off or goes wrong at {where})") from None
    except (ValueError, RecursionError) as error:
        raise BrokenFile(FIELD, str(path), f"a bench file that can be read ({error})") from None
    if not isinstance(raw, dict):
        raise BrokenFile(FIELD, str(path), f"a bench file (schema {SCHEMA})")
    return raw


def write(file: BenchFile, path: Path) -> None:
    """Write a file atomically; packed where its name ends in .gz."""
    document = text(file).encode("utf-8")
    atomic_write(gzip.compress(document, mtime=0) if path.suffix == ".gz" else document, path)


def text(file: BenchFile) -> str:
    """The document as it is written: one line per point, so that files can be compared by eye."""
    document = file.as_json()
    points = document.pop("points")
    head = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    lines = ",\n  ".join(json.dumps(point, ensure_ascii=False, allow_nan=False) for point in points)
    return f'{head[:-2]},\n "points": [' + (f"\n  {lines}\n ]" if points else "]") + "\n}\n"


def extended(file: BenchFile, more: Iterable[Measurement], **changes: Any) -> BenchFile:
    """The file with more points, and other fields replaced."""
    return replace(file, points=(*file.points, *more), **changes)


@cache
def chip_named(platform: str, name: str) -> str:
    """The catalog's name of a device, or "" where it has none.

    >>> chip_named("cuda", "NVIDIA H200"), chip_named("tpu", "TPU v6 lite"), chip_named("cpu", "Xeon")
    ('h200', 'v6e', '')
    """
    if platform == "cpu":
        return ""
    from chipwise.catalog import find_chip, load

    kind = name.strip().lower()
    for chip in load().chips.values():
        if kind in (alias.lower() for alias in chip.device_kinds):
            return chip.id
    try:
        return find_chip(name).id
    except InputError:
        return ""


def rows(file: BenchFile, framework: str = "") -> list[dict[str, Any]]:
    """Usable points as flat rows with the columns `COLUMNS` and `MORE_COLUMNS`; of one framework where it is named.

    A column that a kind of work does not have is empty. The parameters of an optimizer step are in `params`, the
    devices of a collective in `n`.
    """
    return [_row(m) for m in file.points if m.usable and framework in ("", m.framework)]


def _row(measurement: Measurement) -> dict[str, Any]:
    assert measurement.seconds is not None
    point, sizes = measurement.point, dict(measurement.point.sizes)
    params = sizes.pop("count", measurement.params)
    if "devices" in sizes:
        sizes["n"] = sizes.pop("devices")
    values = {
        "kind": point.kind,
        "dtype": point.dtype,
        "seconds": measurement.seconds.median,
        "model": point.model,
        "compile": int(point.compile),
        "remat": int(point.remat),
        "params": params or "",
        "peak_gib": f"{measurement.peak_bytes / GiB:.4g}" if measurement.peak_bytes is not None else "",
        **sizes,
    }
    values |= {"framework": measurement.framework, "causal": int(point.causal) if point.kind.startswith("sdpa") else ""}
    return {column: values.get(column, "") for column in (*COLUMNS, *MORE_COLUMNS)}
