"""Quotas at the start of jobs: who may take how much more, kept up to date from pass to pass.

Jobs that no quota leaves anything for are left out of the queue's window, so that one user's thousands never stand
before everybody else's; those shown have scores only where their quotas allow them. What ended is summed once, then
attempt by attempt as they leave the list of those under way; all is summed again every ten minutes, and each month.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from math import inf

import numpy as np

from chipwise.route.access.quota import PARTS, SLACK, Quota, Quotas, Usage, amount, month_of, of_limit
from chipwise.route.cluster_state import ClusterState, Decision, Flags, Floats, Ints, PolicyDecision
from chipwise.route.job_table import JobTable
from chipwise.route.ledger import BadRow, Conflict, Ledger
from chipwise.route.ledger.records import UNDER_WAY, AttemptRow, JobRow
from chipwise.route.ledger.usage import ended_usage, running_usage
from chipwise.route.option import Option

AGAIN_S = 600.0  # between two sums over the whole month: others' attempts that came and went between passes are in it
_Account = tuple[str, str]  # user and team
_NOTHING = Usage()


class QuotaKeeper:
    """What accounts may still use. An account is a user in a team; its number is a column of the job table."""

    def __init__(self, quotas: Quotas, ledger: Ledger) -> None:
        self.quotas, self.ledger, self.limited = quotas, ledger, quotas.limited
        self._numbers: dict[_Account, int] = {}
        self._accounts: list[_Account] = []
        self._pairs: list[tuple[int, int]] = []  # of each account, the numbers of its quotas; -1: none
        self._quotas: dict[str, int] = {}  # numbers by `user NAME` and `team NAME`
        self._limits: list[tuple[float, ...]] = [(inf,) * len(PARTS)]  # by number; the last is that of no quota
        self._use = np.zeros((1, len(PARTS)))  # by number
        self._under_way: dict[str, _Account] = {}  # attempts at the last pass
        self._ended: dict[str, Usage] = {}  # of this month, by `user NAME` and `team NAME`
        self._held: dict[str, Usage] = {}  # of attempts under way
        self._left = np.empty((0, len(PARTS)))  # [account, part]
        self._waiting: dict[str, str] = {}  # of this pass: jobs that wait for a quota, with the reason
        self._summed, self._month = -inf, (0.0, 0.0)

    def account(self, row: JobRow) -> int:
        """The number of a job's account; -1 where there are no quotas."""
        if not self.limited:
            return -1
        key = (row.user, row.team)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._accounts)
            self._accounts.append(key)
            limits = [self._quota(name, quota) for name, quota in self.quotas.of(*key)]
            self._pairs.append((limits[0] if limits else -1, limits[1] if len(limits) > 1 else -1))
        return number

    def _quota(self, name: str, quota: Quota) -> int:
        number = self._quotas.setdefault(name, len(self._quotas))
        if number == len(self._limits) - 1:
            self._limits.insert(number, (quota.chips, quota.chip_hours, quota.usd))
        return number

    def refresh(self, under_way: Sequence[AttemptRow], rows: Mapping[str, JobRow], now: float) -> None:
        """Take in what is under way, and what has ended since the last pass."""
        if not self.limited:
            return
        month, changed = month_of(now), set(self._held)
        if month != self._month or abs(now - self._summed) > AGAIN_S:
            self._ended = self.ledger.usage(self.quotas, now, under_way=False)
            self._summed, self._month, changed = now, month, set(self._quotas)
        else:
            for attempt in self._under_way.keys() - {attempt.id for attempt in under_way}:
                self._end(attempt, self._under_way[attempt])
        self._held, self._under_way, self._waiting = {}, {}, {}
        for attempt_row in under_way:
            row = rows.get(attempt_row.job_id)
            if row is not None:
                account = self._under_way[attempt_row.id] = (row.user, row.team)
                begun = attempt_row.started or attempt_row.intended
                self._hold(account, running_usage(attempt_row.option, begun, attempt_row.seen, month))
        self._count(changed | self._held.keys())

    def held(self, table: JobTable) -> Flags | None:
        """Which of the table's rows wait for a quota that leaves less than they take at the least."""
        if not self.limited or not len(table):
            return None
        left = self._left_by(table.column("account"))
        waiting = np.zeros(len(table), dtype=bool)
        for k, least in enumerate(table.least()):
            waiting |= least > left[:, k] * SLACK
        return waiting & (table.column("current_pool") < 0)

    def limit(self, table: JobTable, state: ClusterState, decision: PolicyDecision) -> PolicyDecision:
        """A policy's decision that sends no job where a quota of its account does not reach."""
        if not self.limited or not state.jobs:
            return decision
        account = table.column("account")
        if len(state.jobs) < len(table):
            account = account[table.rows(state.jobs)]
        left = self._left_by(account)[:, :, None]  # [J, 3, 1]
        possible = (state.chips > 0) & np.isfinite(state.seconds)
        need = np.stack(
            [
                np.where(possible, value, 0.0)
                for value in (state.chips, state.chips * np.where(possible, state.seconds, 0.0) / 3600, state.usd)
            ],
            axis=1,
        )
        over = (need > left * SLACK).any(axis=1) & possible & (state.current_pool < 0)[:, None]
        if not over.any():
            return decision
        for j in np.flatnonzero((over | ~possible).all(axis=1) & over.any(axis=1)).tolist():
            least = Usage(*(float(part[possible[j]].min()) for part in need[j]))
            self._waiting[state.jobs[j]] = self._reason(self._accounts[int(account[j])], least)
        return replace(decision, score=np.where(over, inf, decision.score))

    def keep_within(self, decisions: Sequence[Decision], table: JobTable, rows: Mapping[str, JobRow]) -> list[Decision]:
        """The decisions of one pass without the starts that together exceed a quota, which wait instead.

        Nothing is stopped in a pool where a start was taken back: it might have been for that one. A job that moves
        has its quota already.
        """
        if not self.limited:
            return list(decisions)
        moving = {decision.job for decision in decisions if decision.kind == "stop"}
        kept, pools = [], set()
        for decision in decisions:
            row = rows.get(decision.job)
            if decision.kind == "wait" and decision.job in self._waiting:
                decision = replace(decision, pool="", reason=self._waiting[decision.job])
            elif decision.kind == "start" and row is not None and decision.job not in moving:
                account, need = (row.user, row.team), _need(table.option(decision.job, decision.pool), row.done)
                if self._over(account, need):
                    pools.add(decision.pool)
                    reason = self._reason(account, need)
                    decision = replace(decision, kind="wait", pool="", variant="", reason=reason)
                else:
                    self._hold(account, need)
            kept.append(decision)
        moved = moving & {decision.job for decision in kept if decision.kind == "start"}
        return [d for d in kept if d.kind != "stop" or d.pool not in pools or d.job in moved]

    def _over(self, account: _Account, need: Usage) -> bool:
        return any(quota.over(self._used(name), need) for name, quota in self.quotas.of(*account))

    def _reason(self, account: _Account, need: Usage) -> str:
        """Which quota a job waits for, in words."""
        for name, quota in self.quotas.of(*account):
            used = self._used(name)
            part = quota.over(used, need)
            if part:
                when = "held now" if part == "chips" else "used this month, what runs included"
                share = of_limit(part, getattr(used, part), getattr(quota, part))
                return f"quota of {name}: {share} {when}, and it needs {amount(part, getattr(need, part))}: waits"
        return "a quota of its user or team: waits"

    def _left_by(self, account: Ints) -> Floats:
        """What is left to each of these rows; those of accounts that are not counted yet have no limit."""
        left = np.full((len(account), len(PARTS)), inf)
        counted = (account >= 0) & (account < len(self._left))
        left[counted] = self._left[account[counted]]
        return left

    def _count(self, changed: Set[str]) -> None:
        """Say what is left to every account, by quotas whose use has changed and by new ones."""
        before = len(self._use) - 1
        self._use = np.vstack([self._use[:before], np.zeros((len(self._limits) - before, len(PARTS)))])
        new = islice(self._quotas, before, None)
        for name in {*changed, *new} & self._quotas.keys():
            used = self._used(name)
            self._use[self._quotas[name]] = [getattr(used, part) for part in PARTS]
        left = np.maximum(np.array(self._limits) - self._use, 0.0)
        pairs = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        self._left = np.minimum(left[pairs[:, 0]], left[pairs[:, 1]])

    def _used(self, name: str) -> Usage:
        return self._ended.get(name, _NOTHING) + self._held.get(name, _NOTHING)

    def _hold(self, account: _Account, more: Usage) -> None:
        for name, _ in self.quotas.of(*account):
            self._held[name] = self._held.get(name, _NOTHING) + more

    def _end(self, attempt: str, account: _Account) -> None:
        try:
            row = self.ledger.attempt(attempt)
        except (Conflict, BadRow):  # removed or unreadable: the next sum over the month has what there is
            return
        if row.state in UNDER_WAY or row.ended is None:
            return
        more = ended_usage(row.option.chips, row.started, row.ended, row.spent, self._month)
        for name, _ in self.quotas.of(*account):
            self._ended[name] = self._ended.get(name, _NOTHING) + more


def _need(option: Option, done: float) -> Usage:
    hours = option.seconds.value * (1 - done) / 3600
    return Usage(option.chips, option.chips * hours, option.usd_hour * hours + option.usd_once)
