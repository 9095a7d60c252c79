"""The sweep's rows: what the TPU compiler estimated for each product, as a CSV file with versions."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from chipwise.calibrate.tpu_shapes import SweepRequest
from chipwise.errors import BrokenFile

FILE = "tpu_compiler.csv"  # beside the calibration files


@dataclass(frozen=True, slots=True)
class Row:
    """One product of one chip as the compiler made it. Of a chip with two devices: one of them."""

    chip: str
    kind: str
    dtype: str
    batch: str
    m: str
    n: str
    k: str
    order: str
    window: str
    cycles: float
    hbm_bytes: float  # of the product itself
    beside_bytes: float  # moved for it: prefetched operands, converted or transposed copies
    parts: int  # fusions the product became
    options: str
    jax: str
    libtpu: str

    @property
    def key(self) -> tuple[str, ...]:
        """What tells rows of a chip apart."""
        return (self.kind, self.dtype, self.batch, self.m, self.n, self.k, self.order, self.window)

    @property
    def sizes(self) -> tuple[float, float, float, float]:
        """Batch, m, n, k."""
        return float(self.batch), float(self.m), float(self.n), float(self.k)


def key_of(request: SweepRequest) -> tuple[str, ...]:
    """The key that the row of a product has."""
    return request.key


def read_rows(path: Path) -> list[Row]:
    """The rows of a sweep; none where there is no file yet."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        names = [field.name for field in fields(Row)]
        if list(reader.fieldnames or ()) != names:
            raise BrokenFile("sweep", path.name, f"the columns {','.join(names)}")
        return [_row(raw, path) for raw in reader]


def _row(raw: dict[str, str], path: Path) -> Row:
    try:
        numbers = {name: float(raw[name]) for name in ("cycles", "hbm_bytes", "beside_bytes")}
        for size in ("batch", "m", "n", "k"):
            float(raw[size])
        return Row(**{**raw, **numbers, "parts": int(raw["parts"])})  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise BrokenFile("sweep", path.name, f"numbers in every row ({error})") from None


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows under a temporary name, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".tmp")
    with scratch.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        writer.writerows([f"{v:.0f}" if isinstance(v, float) else v for v in astuple(row)] for row in rows)
    scratch.replace(path)
