"""Every run has a home, temporary files and caches of its own, leaves nothing behind, and says what it skipped and why."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from scratch import VARIABLE, Run

# the same examples on every machine, however slow it is
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")
WORKER = "PYTEST_XDIST_WORKER" in os.environ
RUN = None if WORKER else Run.begin()  # before anything asks where temporary files go


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background job: no command would hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    return f"home, temporary files and caches of this run: {os.environ[VARIABLE]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a compiler that can't be used here."""
    from toolchains import lacking

    for item in items:
        needed = [name for mark in item.iter_markers("compiler") for name in mark.args]
        if why := lacking(*needed):
            item.add_marker(pytest.mark.skip(reason=why))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why tests were skipped, each reason once; and what outlived the run, which fails it."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    if reasons:
        terminalreporter.section(f"{reasons.total()} skipped, and why")
        for reason, many in reasons.most_common():
            terminalreporter.line(f"{many:5d}  {reason}")
    if RUN is None:
        return
    left = RUN.left_behind()
    if left:
        terminalreporter.section("left behind by the tests", red=True)
        for each in left:
            terminalreporter.line(each)
        terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    if RUN is not None:
        RUN.end()
