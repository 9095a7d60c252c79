"""Every run has a home, temporary files and caches of its own, leaves nothing behind, and says what it skipped and why."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import lane
from scratch import VARIABLE, Run, Span

# the same examples on every machine, however slow it is
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")
# the same ages of prices on every day: what is fresh today is stale in a month
os.environ.setdefault("CHIPWISE_TODAY", "2026-11-18")
WORKER = "PYTEST_XDIST_WORKER" in os.environ
gc.disable()  # until all tests are collected: what they import stays
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # jsonschema's check of IRIs: 3 s to import
RUN = None if WORKER else Run.begin()  # before anything asks where temporary files go


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background job: no command would hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    return f"home, temporary files and caches of this run: {os.environ[VARIABLE]}"


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> lane.Scheduler:
    """Files whose tests share what they start go to one process, the tests of others wherever there is time."""
    return lane.Scheduler(config, log)


@pytest.hookimpl(trylast=True)  # after -m has chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs a compiler that can't be used here; what takes long begins first; a part of them for SHARD=1/3."""
    from toolchains import lacking

    for item in items:
        needed = [name for mark in item.iter_markers("compiler") for name in mark.args]
        if why := lacking(*needed):
            item.add_marker(pytest.mark.skip(reason=why))
    lane.fewer_examples(items)
    items[:] = lane.ordered(items)
    if part := os.environ.get("SHARD"):
        scopes = lane.shard(items, part)
        config.hook.pytest_deselected(items=[item for item in items if lane.scope(item.nodeid) not in scopes])
        items[:] = [item for item in items if lane.scope(item.nodeid) in scopes]


def pytest_collection_finish() -> None:
    """What is loaded is not looked through again by each collection of garbage."""
    gc.collect()
    gc.freeze()
    gc.enable()


SPENT = {"setup": 0.0, "call": 0.0}  # CPU seconds before the part of a test that runs


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    SPENT["setup"] = SPENT["call"] = lane.cpu_seconds()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    SPENT["call"] = lane.cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A test that takes more CPU than it may, and is not marked slow, fails."""
    if call.when != "call":
        return (yield)
    now = lane.cpu_seconds()
    item.user_properties.append((lane.COST, now - SPENT["setup"]))
    report: pytest.TestReport = yield
    over = lane.over_limit(SPENT["call"] - SPENT["setup"], now - SPENT["call"])
    if over and report.passed and not lane.ALL and not item.get_closest_marker("slow"):
        report.outcome, report.longrepr = "failed", f"{item.nodeid} {over}: make it cheaper, or mark it slow"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why tests were skipped, each reason once; what they cost; and what outlived the run, which fails it."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    if reasons:
        terminalreporter.section(f"{reasons.total()} skipped, and why")
        for reason, many in reasons.most_common():
            terminalreporter.line(f"{many:5d}  {reason}")
    _fuzz_table(terminalreporter)
    if RUN is None:
        return
    rows = lane.costs(report for reports in terminalreporter.stats.values() for report in reports)
    if len(rows) > lane.SLOWEST:
        terminalreporter.section(f"the {lane.SLOWEST} slowest tests, the costliest files, and all by folder")
        for line in lane.table(rows):
            terminalreporter.line(line)
    every = (report for reports in terminalreporter.stats.values() for report in reports)
    left = RUN.left_behind([Span(r.nodeid, r.start, r.stop) for r in every if isinstance(r, pytest.TestReport)])
    if left:
        terminalreporter.section("left behind by the tests", red=True)
        for each in left:
            terminalreporter.line(each)
        terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _fuzz_table(terminalreporter: pytest.TerminalReporter) -> None:
    """What fuzzing came to, reader by reader."""
    every = [
        report
        for outcome in ("passed", "failed", "xfailed", "xpassed")
        for report in terminalreporter.stats.get(outcome, [])
    ]
    rows = [value for report in every for name, value in getattr(report, "user_properties", ()) if name == "fuzz"]
    if rows:
        terminalreporter.section(f"fuzz: {sum(row[1] for row in rows):,} cases")
        terminalreporter.line(f"{'loader':18} {'cases':>8} {'taken':>8} {'findings':>8}")
        for name, cases, taken, findings in sorted(rows):
            terminalreporter.line(f"{name:18} {cases:8,} {taken:8,} {findings:8}")


def pytest_unconfigure() -> None:
    if RUN is not None:
        RUN.end()
