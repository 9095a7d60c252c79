"""Requests that were seen, from a CSV file; what is wrong with it is said with its line."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from chipwise.errors import BrokenFile
from chipwise.io.files import MAX_BYTES, read_text
from chipwise.workload.model import Model
from chipwise.workload.serve import Trace

COLUMNS = {"decoder": ("arrival_s", "input", "output"), "encoder": ("arrival_s", "input")}
IMAGE_COLUMNS = ("arrival_s",)
_MOST_SECONDS = 1e10  # three centuries; a timestamp in milliseconds since 1970 is more
_MOST_TOKENS = 10**9


def read_trace(path: Path, model: Model) -> Trace:
    """The requests of a file with a header and one request a line, in order of arrival."""
    columns = COLUMNS.get(model.family, IMAGE_COLUMNS)
    if model.encoder is not None:
        columns = ("arrival_s", "output") if model.fixed_input else COLUMNS["decoder"]
    seen: list[tuple[float, int, int]] = []
    last = -math.inf
    for line, cells in _rows(path, columns):
        where = f"{path.name} line {line}"
        arrival = _number(cells["arrival_s"], f"{where} arrival_s", "seconds of at least 0", 0.0, _MOST_SECONDS)
        if arrival < last:
            raise BrokenFile(f"{where} arrival_s", f"{arrival:g}", f"no time before the line above ({last:g})")
        last = arrival
        tokens = [_tokens(cells[name], f"{where} {name}") for name in columns[1:]]
        together = max(tokens) if model.encoder and tokens else sum(tokens)
        if model.context and together > model.context:
            raise BrokenFile(
                where, f"{together} tokens",
                f"at most the {model.context:,} tokens {model.name} takes (model.context changes that)",
            )  # fmt: skip
        if model.fixed_input:
            tokens.insert(0, model.fixed_input)
        seen.append((arrival, tokens[0], tokens[1] if len(tokens) > 1 else 0))
    if not seen:
        raise BrokenFile("serve.trace", str(path), "at least two requests below the header: it has none")
    if seen[0][0] == last:
        raise BrokenFile(
            "serve.trace", str(path), "requests that come at different times (offline is for those that don't)"
        )
    table = np.array(seen, dtype=np.float64)
    return Trace(path.name, table[:, 0] - table[0, 0], table[:, 1].copy(), table[:, 2].copy())


def rate_of(trace: Trace) -> float:
    """Requests per second, over the time between the first and the last."""
    return (len(trace.arrival_s) - 1) / float(trace.arrival_s[-1])


def at_rate(trace: Trace, rate: float) -> Trace:
    """The same requests, faster or slower."""
    return Trace(trace.name, trace.arrival_s * (rate_of(trace) / rate), trace.input, trace.output)


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells of each request."""
    wanted = ",".join(columns)
    lines = csv.reader(read_text(path, MAX_BYTES).splitlines(), strict=True)
    try:
        header = [name.strip() for name in next(lines)]
        if sorted(header) != sorted(columns):
            raise BrokenFile(f"{path.name} line 1", ",".join(header), f"the header {wanted}")
        for cells in lines:
            if not cells:
                continue
            if len(cells) != len(header):
                where = f"{path.name} line {lines.line_num}"
                raise BrokenFile(where, ",".join(cells), f"{len(header)} cells: {wanted}")
            yield lines.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise BrokenFile(f"{path.name} line {lines.line_num}", str(error), "plain CSV") from None


def _number(text: str, where: str, accepted: str, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:  # nan is neither
        raise BrokenFile(where, text, accepted)
    return number


def _tokens(text: str, where: str) -> int:
    accepted = f"a whole number of tokens from 1 to {_MOST_TOKENS:,}"
    number = _number(text, where, accepted, 1, _MOST_TOKENS)
    if not number.is_integer():
        raise BrokenFile(where, text, accepted)
    return int(number)
