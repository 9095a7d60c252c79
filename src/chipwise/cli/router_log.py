"""What a router says while it runs."""

from __future__ import annotations

import sys
from collections import deque
from datetime import UTC, datetime
from math import isfinite
from typing import Any, ClassVar

from chipwise.present.blocks import ASCII, Block, Text
from chipwise.present.output import PipeClosed
from chipwise.present.result import Result
from chipwise.present.safe import safe
from chipwise.route.ledger import LedgerError
from chipwise.route.load import Pools
from chipwise.route.router import Router, TickReport
from chipwise.units import format_seconds

KEPT_LINES = 10_000  # for --out, which is written at the end; a router runs for months


class RouterLog(Result):
    """Lines on stdout, one for each thing that happens; counts for the record at the end."""

    VERB: ClassVar[str] = "router run"

    def __init__(self, router: Router, pools: Pools, interval: float, quiet: bool) -> None:
        self.router, self.pools, self.quiet = router, pools, quiet
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.said = 0  # lines, those that are kept no more included
        self.counts: dict[str, int] = {}
        self.down: dict[str, str] = {}
        self.orphaned: set[str] = set()
        self.quarantined: dict[str, str] = {}
        self.stopped: set[str] = set()
        self.trouble_told = ""
        self.ticks = 0
        kept = format_seconds(router.keep_s) if isfinite(router.keep_s) else "for ever"
        self.say(
            f"router {router.name}: policy {router.policy_name}, every {format_seconds(interval)}, lease "
            f"{format_seconds(router.lease_s)}, folders of attempts kept {kept}, ledger {router.ledger.where}"
        )
        if router.ledger.warning:
            self.say(f"warning: {router.ledger.warning}")
        for line in self.assumptions():
            self.say(f"assumed: {line}")

    def assumptions(self) -> list[str]:
        """What the pools file left open."""
        return list(self.pools.assumptions)

    def say(self, line: str) -> None:
        """One line, whatever a program wrote into it."""
        line = safe(line)
        self.lines.append(line)
        self.said += 1
        if self.quiet:
            return
        try:
            sys.stdout.write(line.translate(ASCII) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None

    def trouble(self, error: LedgerError, wait: float) -> None:
        """The ledger does not answer: said once for each thing that is wrong with it."""
        if self.trouble_told != error.problem:
            at = datetime.now(UTC).strftime("%H:%M:%S")
            self.say(f"{at} {error}; nothing is decided until then, what runs goes on; tried again")
        self.trouble_told = error.problem

    def tick(self, report: TickReport) -> None:
        """What a tick has done."""
        at = datetime.fromtimestamp(report.at, UTC).strftime("%H:%M:%S")
        if self.trouble_told:
            self.say(f"{at} ledger {self.router.ledger.where} answers again")
        self.trouble_told = ""
        for attempt, end in report.ended:
            self._count(end)
            self.say(f"{at} {self._ended(attempt, end)}")
        for attempt in report.started:
            self._count("started")
            row = self.router.ledger.attempt(attempt)
            self.say(f"{at} job {row.job_id}: attempt {row.number} in {row.pool}, variant {row.variant}: submitted")
        for attempt in report.refused:
            self._count("refused")
            self.say(f"{at} {self._ended(attempt, 'refused')}")
        for backend_id in report.stopped:
            if backend_id not in self.stopped:  # told again at each pass, until its grace is over
                self.say(f"{at} told to stop: {backend_id}")
        self.stopped = set(report.stopped)
        for what, why in report.quarantined.items():
            if self.quarantined.get(what) != why:
                self.say(f"{at} {what} is quarantined, and looked at again in the next pass: {why}")
        self.quarantined = dict(report.quarantined)
        for attempt in report.unknown:
            self.say(f"{at} attempt {attempt} runs on its backend and is not in the ledger: left alone")
        for attempt in report.orphaned:
            if attempt not in self.orphaned:
                row = self.router.ledger.attempt(attempt)
                self.say(
                    f"{at} job {row.job_id}: its attempt is in {row.pool}, which is not in the pools file: "
                    "left to a router that knows it"
                )
        if report.removed:
            self.say(f"{at} folders of {len(report.removed)} old attempts removed")
        self.orphaned = set(report.orphaned)
        self._backends(report, at)

    def end(self, ticks: int) -> None:
        """The last line."""
        self.ticks = ticks
        jobs = self.router.ledger.totals()["jobs"]
        self.say(
            f"router {self.router.name}: stopped after {ticks} scheduling {'pass' if ticks == 1 else 'passes'}; jobs: "
            + (", ".join(f"{int(n)} {state}" for state, n in jobs.items()) or "none")
        )

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "router": self.router.name,
            "policy": self.router.policy_name,
            "ledger": self.router.ledger.where,
            "keep_seconds": self.router.keep_s if isfinite(self.router.keep_s) else None,
            "ticks": self.ticks,
            "attempts": {k: self.counts[k] for k in sorted(self.counts)},
            "jobs": {k: int(n) for k, n in self.router.ledger.totals()["jobs"].items()},
            "backends_down": self.down,
            "assumptions": self.assumptions(),
        }

    def blocks(self) -> list[Block]:
        """What was said, the last lines of it where that was much."""
        cut = self.said - len(self.lines)
        before = [Text(f"({cut:,} lines before these are not kept)")] if cut else []
        return [*before, *(Text(line) for line in self.lines)]

    def _ended(self, attempt: str, end: str) -> str:
        row = self.router.ledger.attempt(attempt)
        if row.reason.startswith("attempt "):  # it says which, where and how
            return f"job {row.job_id}: {row.reason}"
        why = f" ({row.reason})" if row.reason else ""
        return f"job {row.job_id}: attempt {row.number} in {row.pool}: {end}{why}"

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _backends(self, report: TickReport, at: str) -> None:
        for name, error in report.down.items():
            if self.down.get(name) != error:
                wait = max(0.0, self.router.health.rows[name].next_try - report.at)
                self.say(f"{at} backend {name} does not answer: {error}; next try in {format_seconds(wait)}")
        for name in [name for name in self.down if name in report.up]:
            self.say(f"{at} backend {name} answers again")
        self.down = dict(report.down)
