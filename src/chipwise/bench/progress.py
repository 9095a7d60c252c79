"""Progress of a run on stderr: each figure as it is measured; on a terminal a bar beneath them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.bench.session import BenchPlan, Event, Tell
from chipwise.bench.show import name, rate
from chipwise.present.blocks import ASCII
from chipwise.present.progress import progress
from chipwise.present.safe import safe
from chipwise.units import format_seconds

if TYPE_CHECKING:
    from chipwise.bench.measurement import Measurement


@contextmanager
def showing(planned: BenchPlan, out: Path | None) -> Iterator[Tell]:
    """Something to tell of a run; what is shown stays."""
    device = planned.parts[0].device
    print_line(
        f"measuring {device.name} with {', '.join(part.framework for part in planned.parts)}: {planned.total} points"
    )
    for note in planned.notes:
        print_line(note)
    if out is None:
        print_line("the result is printed and not kept: --out FILE keeps it")
    if not sys.stderr.isatty():
        yield _plain
        return
    with _live(planned.total) as tell:
        yield tell


def _plain(event: Event) -> None:
    if event.measured is not None:
        print_line(f"{event.done}/{event.total} {line(event.measured)}")


@contextmanager
def _live(total: int) -> Iterator[Tell]:
    with progress("measuring") as shown:

        def tell(event: Event) -> None:
            if event.measured is not None:
                shown.keep(line(event.measured), "" if event.measured.usable else "yellow")
            shown.bar(event.done, total, f"{event.framework} {name(event.point)}: {event.stage}")

        yield tell


def line(measurement: Measurement) -> str:
    """A measurement in a line."""
    head = f"{measurement.framework} {name(measurement.point)}:"
    if measurement.seconds is None:
        return f"{head} {measurement.status}: {measurement.reason}"
    figure = f"{head} {format_seconds(measurement.seconds.median)}, {rate(measurement)}"
    return figure if measurement.usable else f"{figure}; {measurement.status}: {measurement.reason}"


def print_line(words: str) -> None:
    """A line on stderr; a reader of it that went away doesn't end the run."""
    try:
        sys.stderr.write(safe(words).translate(ASCII) + "\n")
        sys.stderr.flush()
    except OSError:
        pass
