"""What a router says while it runs."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from math import isfinite
from typing import Any, ClassVar

from chipwise.present.blocks import ASCII, Block, Text
from chipwise.present.output import PipeClosed
from chipwise.present.result import Result
from chipwise.route.load import Pools
from chipwise.route.router import Router, TickReport
from chipwise.units import format_seconds


class RouterLog(Result):
    """Lines on stdout, one for each thing that happens; counts for the record at the end."""

    VERB: ClassVar[str] = "router run"

    def __init__(self, router: Router, pools: Pools, interval: float, quiet: bool) -> None:
        self.router, self.pools, self.quiet = router, pools, quiet
        self.lines: list[str] = []
        self.counts: dict[str, int] = {}
        self.down: dict[str, str] = {}
        self.orphaned: set[str] = set()
        self.ticks = 0
        kept = format_seconds(router.keep_s) if isfinite(router.keep_s) else "for ever"
        self.say(
            f"router {router.name}: policy {router.policy_name}, every {format_seconds(interval)}, lease "
            f"{format_seconds(router.lease_s)}, folders of attempts kept {kept}, ledger {router.ledger.where}"
        )
        for line in self.assumptions():
            self.say(f"assumed: {line}")

    def assumptions(self) -> list[str]:
        """What the pools file left open."""
        return list(self.pools.assumptions)

    def say(self, line: str) -> None:
        """One line."""
        self.lines.append(line)
        if self.quiet:
            return
        try:
            sys.stdout.write(line.translate(ASCII) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            raise PipeClosed from None

    def tick(self, report: TickReport) -> None:
        """What a tick has done."""
        at = datetime.fromtimestamp(report.at, UTC).strftime("%H:%M:%S")
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
            self.say(f"{at} told to stop: {backend_id}")
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
        """All that was said."""
        return [Text(line) for line in self.lines]

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
