"""The lanes of the tests: which share of a sweep runs, which tests go to one process, and what each costs.

`make test` has a share of every sweep and an eighth of Hypothesis' examples, which are the same on every machine;
`make test-slow` has all of them, and the tests that take minutes. What is not marked slow has a limit of CPU seconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import settings
from numba.core import event
from xdist.scheduler import LoadScopeScheduling

ALL = os.environ.get("CHIPWISE_TESTS") == "all"  # set by `make test-slow`
CPU_LIMIT_S = 60.0  # of a test and what it starts and waits for: a busy machine takes longer, but not more CPU
SHARED_LIMIT_S = 120.0  # of what tests of a file share, made for the first of them
SLOWEST = 25
COSTLIEST = 20  # files
COST = "cpu_seconds"
# Files whose tests share nothing that takes long to make: each test may run in another process. Of pages, each page.
SPREAD = (
    "tests/e2e/test_help_examples.py",
    "tests/e2e/compiled/test_reference.py::test_the_other_reference_programs",
    "tests/property/",
)
PAGES = "tests/e2e/test_docs.py"
# What begins first, so that no long file is the tail of a run: compilers, then whatever starts processes
ORDER = ("tests/e2e/compiled/", "tests/e2e/", "tests/unit/test_bench", "tests/property/", "tests/")
BESIDE_SERVICE = 2  # scopes that compute for each that starts services, which mostly wait


def share(cases: Iterable[Any], of: int = 4, first: int = 0) -> list[Any]:
    """Every `of`-th case in `make test`, all in `make test-slow`; for tests that are marked `sampled`.

    >>> share(range(8), 4, 5) in ([1, 5], list(range(8)))
    True
    """
    return list(cases) if ALL else list(cases)[first % of :: of]


def fewer_examples(items: Iterable[pytest.Item]) -> None:
    """An eighth of the examples of every property, but no fewer than five."""
    for item in items:
        if item.get_closest_marker("hypothesis") and not ALL:
            function = getattr(item.obj, "__func__", item.obj)
            own = function._hypothesis_internal_use_settings
            few = min(own.max_examples, max(own.max_examples // 8, 5))
            function._hypothesis_internal_use_settings = settings(own, max_examples=few)


def scope(nodeid: str) -> str:
    """The tests that run in one process, one after another."""
    file, _, rest = nodeid.partition("::")
    if nodeid.startswith(SPREAD):
        return nodeid
    return f"{file}::{rest.partition('[')[2].partition(':')[0]}" if file == PAGES else file


class Scheduler(LoadScopeScheduling):
    """Hands scopes to processes in the order of the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)


def ordered(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests by scope, long ones first, with those of services spread among those that compute."""
    scopes: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in sorted(items, key=_place):
        scopes[scope(item.nodeid)].append(item)
    parts: tuple[list[list[pytest.Item]], ...] = ([], [])
    for tests in scopes.values():
        parts[any(item.get_closest_marker("service") for item in tests)].append(tests)
    computing, services = map(iter, parts)
    out: list[pytest.Item] = []
    while batch := [*islice(services, 1), *islice(computing, BESIDE_SERVICE)]:
        out += (item for tests in batch for item in tests)
    return out


def _place(item: pytest.Item) -> int:
    return next((n for n, start in enumerate(ORDER) if item.nodeid.startswith(start)), len(ORDER))


def shard(items: Sequence[pytest.Item], part: str) -> set[str]:
    """The scopes of a part, `2/3`: every third from the second on."""
    number, of = map(int, part.split("/"))
    if not 1 <= number <= of:
        raise pytest.UsageError(f"SHARD={part}: expected a part such as 1/3")
    return set(list(dict.fromkeys(scope(item.nodeid) for item in items))[number - 1 :: of])


class Compiling(event.Listener):
    """CPU seconds in which Numba has compiled in this process: once for a machine, whichever test comes first."""

    def __init__(self) -> None:
        self.seconds, self._depth, self._began = 0.0, 0, 0.0
        event.register("numba:compile", self)

    def on_start(self, _: event.Event) -> None:
        self._began = self._began if self._depth else time.process_time()
        self._depth += 1

    def on_end(self, _: event.Event) -> None:
        self._depth -= 1
        self.seconds += 0.0 if self._depth else time.process_time() - self._began


COMPILING = Compiling()


def cpu_seconds() -> float:
    """CPU that this process, what it waited for and the commands that it ran have taken, without Numba's compiling."""
    ran = sys.modules.get("command")
    return sum(os.times()[:4]) - COMPILING.seconds + (ran.ZYGOTE.cpu_seconds if ran else 0.0)


def over_limit(shared: float, own: float) -> str:
    """What of a test's CPU seconds is too much, or ""."""
    for part, spent, limit in (
        ("took", own, CPU_LIMIT_S),
        ("is the first of a file to need what took", shared, SHARED_LIMIT_S),
    ):
        if spent > limit:
            return f"{part} {spent:.0f} CPU seconds, over {limit:g}"
    return ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a test took."""

    test: str
    seconds: float
    cpu: float


def costs(reports: Iterable[object]) -> list[Cost]:
    """The cost of every test that ran, from its reports."""
    seconds: dict[str, float] = defaultdict(float)
    cpu: dict[str, float] = {}
    for report in reports:
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid] += report.duration
            cpu.update((report.nodeid, value) for name, value in report.user_properties if name == COST)
    return [Cost(test, seconds[test], cpu[test]) for test in cpu]


def table(rows: Sequence[Cost]) -> list[str]:
    """The slowest tests, the files that take the most CPU and the sum of each folder, as lines."""
    slowest = sorted(rows, key=lambda row: -row.seconds)[:SLOWEST]
    lines = ["seconds      CPU  test", *(f"{row.seconds:7.1f}  {row.cpu:7.1f}  {row.test}" for row in slowest)]
    files = {row.test: row.test.partition("::")[0] for row in rows}
    folders = {test: "/".join(PurePosixPath(file).parts[:2]) for test, file in files.items()}
    return [*lines, "", *_sums(rows, files, "file")[: COSTLIEST + 1], "", *_sums(rows, folders, "folder")]


def _sums(rows: Iterable[Cost], place: Mapping[str, str], title: str) -> list[str]:
    """What the tests of each place took, the most CPU first."""
    places: dict[str, list[Cost]] = defaultdict(list)
    for row in rows:
        places[place[row.test]].append(row)
    sums = [(sum(r.cpu for r in part), sum(r.seconds for r in part), len(part), name) for name, part in places.items()]
    lines = [f"{seconds:7.0f}  {cpu:7.0f}  {count:7,}  {name}" for cpu, seconds, count, name in sorted(sums)[::-1]]
    return [f"seconds      CPU    tests  {title}", *lines]
