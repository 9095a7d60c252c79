"""Fuzzing of everything that reads what others write: seeded mutations of good inputs, and every input that ever failed.

A case is known by its target, its seed and its number, so that it is the same on every machine; time alone decides
how many are tried. Whatever a reader raises but a one-line `ChipwiseError`, and whatever takes longer than `PATIENCE_S`,
is a finding: the input is printed, and kept in a file that can be added to the corpus as it is.
"""

from __future__ import annotations

import hashlib
import json
import math
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml

from chipwise.errors import ChipwiseError

CORPUS = Path(__file__).parent / "corpus"
PATIENCE_S = 20
SHOWN = 2000  # characters of an input that are printed
HOSTILE: list[Any] = [
    None, True, False, [], {}, "", " ", 0, -1, 1.5, 2**31, 2**63, -(2**63), 10**30, math.inf, -math.inf, math.nan, 1e308, 5e-324,
    "nan", "inf", "1e999", "-0", "0x10", "1_000", "\x1b[2J", "\x9b31m", "\u202e", "\u2028", "\x00", "\ud800", "a" * 5000, "=1+1", "../../x",
    "/dev/zero", "٣", "²", "9" * 5000, [[]], [None], {"a": {}}, {"": 1}, [1, [2, [3]]], "2026-13-45", "9999-12-31T23:59:59Z", "h100", "8xh100",
]  # fmt: skip
TOKENS = [
    b"!!float ''", b"!!bool x", b"!!timestamp ''", b"&a [*a]", b"*a", b"? ", b"- " * 40, b"[" * 3000, b"{" * 3000, b"\xff\xfe", b"\x00", b"\n", b"\r",
    b"\t", b'"', b"'", b",", b":", b"Infinity", b"NaN", b"1e999", b"-1", b"null", b"%TAG ! x\n---\n", b"...", b"<<: ", b"|\n", b"\xef\xbb\xbf",
    b"\xe2\x80\xae", b"9" * 400, b"(" * 500,
    b"1" * 20_000, b" " * 20_000, b"1," * 10_000,
]  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A reader, and good inputs that mutations start from; `shape` says how these are taken apart."""

    name: str
    read: Callable[[Path, bytes], object]
    seeds: Callable[[], list[bytes]]
    shape: str = "text"  # json, yaml, csv or text


@dataclass
class Finding:
    """What went wrong, where in the source, and the input that shows it."""

    error: str
    place: str
    data: bytes
    count: int = 1


@dataclass
class Outcome:
    """What fuzzing a target came to."""

    target: str
    cases: int = 0
    taken: int = 0
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)


class Hang(BaseException):
    """A reader took longer than it may; no Exception, lest the reader catch it."""


@contextmanager
def _patience() -> Iterator[None]:
    def over(number: int, frame: Any) -> None:
        raise Hang(f"more than {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attempt(target: Target, data: bytes, folder: Path, outcome: Outcome) -> None:
    """One case."""
    outcome.cases += 1
    try:
        with _patience():
            target.read(folder, data)
        outcome.taken += 1
    except ChipwiseError as error:
        if "\n" in str(error):
            _note(outcome, "an error of several lines", error, data)
    except (Exception, Hang) as error:
        _note(outcome, type(error).__name__, error, data)


def _note(outcome: Outcome, kind: str, error: BaseException, data: bytes) -> None:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "chipwise" in f.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    finding = outcome.findings.setdefault((kind, place), Finding(f"{kind}: {str(error)[:200]}", place, data, 0))
    finding.count += 1
    if len(data) < len(finding.data):
        finding.data = data


def corpus(target: Target) -> list[tuple[str, bytes]]:
    """Inputs that failed once."""
    return [(path.name, path.read_bytes()) for path in sorted((CORPUS / target.name).glob("*"))]


def fuzz(target: Target, folder: Path, seconds: float, seed: str) -> Outcome:
    """The corpus, the seeds, then mutations of both for so many seconds."""
    outcome = Outcome(target.name)
    seeds = [*target.seeds(), *(data for _, data in corpus(target))]
    for data in seeds:
        attempt(target, data, folder, outcome)
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        attempt(target, case(target, seeds, seed, number), folder, outcome)
        number += 1
    return outcome


def case(target: Target, seeds: list[bytes], seed: str, number: int) -> bytes:
    """The input of that number: always the same."""
    random = Random(f"{target.name} {seed} {number}")
    data = random.choice(seeds)
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        data = _mutated(data, target.shape, random)
    return data


def _mutated(data: bytes, shape: str, random: Random) -> bytes:
    if shape != "text" and random.random() < 0.7:
        try:
            return {"json": _json, "yaml": _yaml, "csv": _csv}[shape](data, random)
        except (ValueError, RecursionError, yaml.YAMLError, ArithmeticError, TypeError, LookupError, AttributeError):
            pass  # one that was broken before: PyYAML itself stumbles over tags
    return _bytes(data, random)


def _bytes(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    size = random.choice((1, 1, 2, 8, 64))
    match random.randrange(6):
        case 0:
            return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at] + data[at + size :]
        case 2:
            return data[:at] + random.choice(TOKENS) + data[at:]
        case 3:
            return data[:at] + data[at : at + size] * random.choice((2, 3, 50)) + data[at + size :]
        case 4:
            return data[:at]
        case _:
            end = random.randrange(len(data) + 1)
            return data[:at] + data[end : end + size] + data[at + size :]


def _json(data: bytes, random: Random) -> bytes:
    return json.dumps(_changed(json.loads(data), random)).encode()


def _yaml(data: bytes, random: Random) -> bytes:
    return yaml.safe_dump(_changed(yaml.safe_load(data), random), sort_keys=False, allow_unicode=True).encode(
        "utf-8", "surrogatepass"
    )


def _changed(document: Any, random: Random) -> Any:
    """The document with one part replaced, left out, renamed or said twice."""
    places: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        part = waiting.pop()
        keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
        places += [(part, key) for key in keys]
        waiting += [part[key] for key in keys]
    if not places or random.random() < 0.02:
        return random.choice(HOSTILE)
    part, key = random.choice(places)
    match random.randrange(7):
        case 0:
            del part[key]
        case 1 if isinstance(part, dict):
            part[random.choice(["", "x", str(key)[:-1], "\x1b", "a" * 300])] = part.pop(key)
        case 2:
            other, there = random.choice(places)
            part[key] = other[there] if there in (other if isinstance(other, dict) else range(len(other))) else None
            part[key] = json.loads(json.dumps(part[key], default=str))  # no cycles
        case 3 if isinstance(part, list):
            part *= random.choice((2, 20))
        case 4 if isinstance(part[key], int | float) and not isinstance(part[key], bool):
            part[key] = random.choice(
                [-part[key], part[key] * 10 ** random.randrange(1, 20), part[key] / 3, str(part[key])]
            )
        case _:
            part[key] = random.choice(HOSTILE)
    return document


def _csv(data: bytes, random: Random) -> bytes:
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    at = random.randrange(len(lines))
    cells = lines[at].split(",")
    cell = random.randrange(len(cells))
    match random.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, random.choice(lines))
        case 2:
            cells[cell : cell + 1] = [] if random.random() < 0.5 else [cells[cell]] * 2
            lines[at] = ",".join(cells)
        case _:
            value = random.choice(HOSTILE)
            cells[cell] = value if isinstance(value, str) else repr(value)
            lines[at] = ",".join(cells)
    return "\n".join(lines).encode("utf-8", "surrogatepass" if random.random() < 0.5 else "replace")


def report(outcome: Outcome, keep: Path) -> str:
    """The findings in words, each with a file that is ready for the corpus."""
    lines = []
    for finding in outcome.findings.values():
        name = hashlib.sha256(finding.data).hexdigest()[:12]
        keep.mkdir(parents=True, exist_ok=True)
        (keep / name).write_bytes(finding.data)
        shown = repr(finding.data)
        lines.append(
            f"{outcome.target}: {finding.error} at {finding.place}, {finding.count} of {outcome.cases} cases\n"
            f"  input: {shown[:SHOWN]}{'...' if len(shown) > SHOWN else ''}\n"
            f"  add it: mkdir -p tests/fuzz/corpus/{outcome.target} && cp {keep / name} tests/fuzz/corpus/{outcome.target}/"
        )
    return "\n".join(lines)
