"""A bench from what people ask for to what was measured: the request is read, the plan made, the points measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chipwise.bench.file import BenchFile, rows
from chipwise.bench.measurement import COLUMNS, MORE_COLUMNS
from chipwise.bench.session import OPENERS, BenchPlan, BenchRequest, Session, Tell
from chipwise.errors import ChipwiseError, Conflict, InputError
from chipwise.ops.point import SUITES
from chipwise.present.blocks import Block
from chipwise.present.result import Result
from chipwise.units import parse_duration

SIZES = ("tiny", "quick", "full")
DEVICES = ("auto", "cuda", "tpu", "rocm", "cpu")


@dataclass(frozen=True, slots=True, repr=False)
class BenchRun(Result):
    """What was measured, and where it is kept; `interrupted` runs hold what was done till then."""

    VERB: ClassVar[str] = "bench"
    CSV_HEADER: ClassVar[tuple[str, ...]] = (*COLUMNS, *MORE_COLUMNS)
    file: BenchFile
    kept: Path | None = None
    interrupted: bool = False

    @property
    def usable(self) -> bool:
        """Whether some point may be used."""
        return any(point.usable for point in self.file.points)

    def record(self) -> dict[str, Any]:
        """The bench file."""
        return self.file.as_json()

    def to_dict(self) -> dict[str, Any]:
        """The bench file, which has a schema of its own."""
        return self.file.as_json()

    def flat_rows(self) -> list[dict[str, Any]]:
        """Usable points, for CSV and pandas."""
        return rows(self.file)

    def blocks(self) -> list[Block]:
        """For people."""
        return self.file.blocks()


def read_request(
    suite: str = "all",
    device: str = "auto",
    frameworks: str | None = None,
    size: str | None = None,
    quick: bool = False,
    seconds: str | float | None = None,
    hostname: bool = False,
) -> BenchRequest:
    """What to measure, as people write it; every failure is one line.

    >>> request = read_request("kernels", device="cpu", frameworks="torch,jax", seconds="10min", quick=True)
    >>> request.size, request.frameworks, request.seconds
    ('quick', ('torch', 'jax'), 600.0)
    """
    if suite not in ("all", *SUITES):
        raise InputError("suite", suite, f"one of all, {', '.join(SUITES)}")
    if device not in DEVICES:
        raise InputError("device", device, f"one of {', '.join(DEVICES)}")
    if size is not None and size not in SIZES:
        raise InputError("suite_size", size, f"one of {', '.join(SIZES)}")
    if quick and size not in (None, "quick"):
        raise Conflict("quick", f"suite_size {size}")
    size = size or ("quick" if quick else "full")
    chosen = tuple(dict.fromkeys(word.strip().lower() for word in (frameworks or "").split(",") if word.strip()))
    if frameworks is not None and (not chosen or set(chosen) - set(OPENERS)):
        raise InputError("frameworks", frameworks, f"some of {', '.join(OPENERS)}")
    limit = None if seconds is None else parse_duration(str(seconds), "seconds")
    if limit is not None and not limit > 0:
        raise InputError("seconds", seconds, "more than 0")
    words = ["chipwise", "bench", suite, "--device", device, "--suite-size", size]
    words += ["--frameworks", ",".join(chosen)] if chosen else []
    words += ["--seconds", str(seconds)] if seconds is not None else []
    suites = SUITES if suite == "all" else (suite,)
    return BenchRequest(suites, device, size, chosen, limit, tuple(words), hostname)


def measure(plan: BenchPlan, out: Path | None = None, tell: Tell | None = None) -> BenchRun:
    """Measure every point of a plan, each framework in a process of its own; kept in `out` as it comes."""
    if not plan.total:
        device = plan.parts[0].device
        raise ChipwiseError(
            f"nothing to measure: {', '.join(plan.request.suites)} has no point for {device.name} "
            f"(devices here: {device.count})"
        )
    if out is not None and out.is_dir():
        raise InputError("out", str(out), "a file's name, not a folder's")
    session = Session(plan, tell or (lambda event: None), out)
    session.run()
    return BenchRun(session.file, out, session.interrupted)
