"""The formats known, each in a file of its own: what a line of it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from chipwise.observe.formats import serving, training
from chipwise.observe.formats.documents import ExpositionReader
from chipwise.observe.formats.line_format import Findings, LineFormat, LineReader
from chipwise.observe.formats.mllog import MlperfReader
from chipwise.observe.formats.progress_bars import BarReader, HuggingFaceReader, LevanterReader


class Reader(Protocol):
    """Reads the lines of one format, and keeps what it found."""

    name: str
    findings: Findings

    def read(self, line: str) -> bool:
        """Take what a line says; whether it is one of this format."""
        ...


def _of_lines(format: LineFormat) -> Callable[[], Reader]:
    return lambda: LineReader(format)


# in the order in which one is preferred where two found as much; the last takes lines of many programs
FORMATS: dict[str, Callable[[], Reader]] = {
    **{one.name: _of_lines(one) for one in (*training.FORMATS, *serving.FORMATS) if not one.general},
    "mlperf": MlperfReader,
    "hf-trainer": HuggingFaceReader,
    "levanter": LevanterReader,
    "lightning": BarReader,
    "prometheus": ExpositionReader,
    **{one.name: _of_lines(one) for one in training.FORMATS if one.general},
}
GENERAL = training.GENERAL.name
KERNEL = "kernel"  # has faults alone
DOCUMENTS = ("vllm-bench", "llm-d", "json")
