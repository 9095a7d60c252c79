"""Verbs of what the jobs of a ledger teach decisions: rates, drift, demand and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipwise.knowledge import Knowledge
    from chipwise.observe.advice.view import PoolAdvice
    from chipwise.observe.demand.view import ObservedDemand
    from chipwise.observe.drift.view import Drifts
    from chipwise.observe.rates.view import Rates


def observe_rates(
    pools: str | Path,
    ledger: str = "",
    *,
    since: str | float | None = None,
    to: str | Path | None = None,
    store: str | Path | None = None,
    knowledge: Knowledge | None = None,
) -> Rates:
    """Say what costs assume of failures, spot interruptions, utilization and power as a ledger's jobs met it.

    `pools` is the pools file of its router: whose chips they are, on which terms. What is assumed is the prior.
    `since` is a day (``"2026-08-01"``) or how long ago (``"90d"``); `to` a file of assumptions to write, for
    ``Knowledge.default(assumptions_file=...)``. `store` is of the telemetry by which power is measured; by default
    one's own, where there is one.

    >>> observe_rates("examples/pools/local.yaml", "nowhere.db")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    chipwise.route.ledger.error.LedgerError: ledger nowhere.db: there is none; ...
    """
    import time
    from dataclasses import replace

    from chipwise.catalog import load
    from chipwise.errors import Refusal
    from chipwise.observe.goodput.fleet import attempt_log
    from chipwise.observe.rates.from_ledger import met_by
    from chipwise.observe.rates.from_telemetry import by_chip, power_met
    from chipwise.observe.rates.posterior import power_rate, rate_of
    from chipwise.observe.rates.view import Rates
    from chipwise.route.ledger import open_view
    from chipwise.route.load.pools import read_pools
    from chipwise.verbs.arguments import knowledge_of, own_telemetry

    know, now = knowledge_of(knowledge), time.time()
    begin = _since(since, now)
    read = read_pools(pools, know)
    by_name = {pool.name: pool for pool in read.pools}
    telemetry = own_telemetry(store)
    with telemetry or nullcontext(), open_view(ledger, create=False) as book:
        power = None if telemetry is None else power_met(telemetry, book, read, begin, now)
        met = met_by(book, by_name, begin, now, lambda attempt: attempt_log(ledger, attempt))
    rates = [rate_of(exposure, know.economics(exposure.figure, exposure.cloud)) for exposure in met.exposures]
    if power is not None:
        chips = load().chips
        rates += [power_rate(drawn, use, chips[chip]) for (chip, use), drawn in sorted(by_chip(power).items())]
    answer = Rates(met=met, rates=rates, today=know.today, power=power)
    if to is None:
        return answer
    if not rates:
        raise Refusal("no attempt held chips that count", "jobs that ran in pools of the pools file")
    return replace(answer, file=answer.write(Path(to)))


def _since(since: str | float | None, now: float) -> float:
    """A moment as people name it: a day, or how long ago."""
    from datetime import UTC, date, datetime

    from chipwise.errors import InputError
    from chipwise.verbs.arguments import seconds_of

    if since is None:
        return 0.0
    if isinstance(since, str):
        try:
            day = date.fromisoformat(since)
        except ValueError:
            pass
        else:
            return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    try:
        return now - seconds_of(since, "since")
    except InputError:
        raise InputError("since", str(since), "a day such as 2026-08-01, or how long ago: 90d") from None


def observe_drift(
    file: str | Path | None = None,
    *,
    pools: str | Path | None = None,
    ledger: str = "",
    knowledge: Knowledge | None = None,
) -> Drifts:
    """Say since when runs take another time than before, and which driver, compiler or library changed then.

    The `file` names logs with the workload, the chips and the labels that they were of; `pools` is a pools file
    instead, for the attempts of a `ledger`'s jobs. Versions that logs tell are labels too.

    >>> drifts = observe_drift("examples/observe/runs.yaml")
    >>> [(group.chip, len(group.runs), group.judged) for group in drifts.groups], len(drifts.left_out)
    ([('h100', 5, False)], 1)
    """
    from chipwise.errors import Conflict, MissingInput
    from chipwise.observe.drift.groups import groups_of
    from chipwise.observe.drift.view import Drifts
    from chipwise.observe.learn.runs import candidate, sources_in, sources_of_jobs
    from chipwise.verbs.arguments import knowledge_of

    if file is not None and pools is not None:
        raise Conflict("file", "pools")
    if file is None and pools is None:
        raise MissingInput([["file"], ["pools"]])
    sources = sources_in(Path(file)) if file is not None else sources_of_jobs(ledger, Path(str(pools)))
    know = knowledge_of(knowledge)
    candidates = [candidate(source, know.calibration) for source in sources]
    return Drifts(groups=groups_of(candidates), left_out=[one for one in candidates if one.run is None])


MOST_WORKLOADS = 100  # of a demand file


def observe_demand(
    pools: str | Path,
    ledger: str = "",
    *,
    since: str | float | None = None,
    start: str | None = None,
    months: int = 12,
    case: str = "likely",
    on: str | Sequence[str] | None = None,
    to: str | Path | None = None,
    store: str | Path | None = None,
    knowledge: Knowledge | None = None,
) -> ObservedDemand:
    """Say what a ledger's jobs asked of chips month by month, and what that makes of the months to come.

    `pools` is the pools file of its router. `to` is a demand file to write, for ``plan_fleet``: of `months` from
    `start` on (``"2027-01"``; by default the next), in the ``"likely"``, ``"low"`` or ``"high"`` `case` of the 90 %
    interval, on the chips of the pools or on those that `on` names. `store` is of the telemetry that has the
    counters of servers whose output is not to be had; by default one's own, where there is one.

    >>> observe_demand("examples/pools/local.yaml", "nowhere.db", case="worst")
    Traceback (most recent call last):
        ...
    chipwise.errors.UnknownName: case: unknown name 'worst'; expected one of high, likely, low
    """
    import time
    from dataclasses import replace

    from chipwise.catalog import exact_chip, load
    from chipwise.errors import InputError, UnknownName
    from chipwise.observe.demand.demand_file import Frame, WorkloadDemand
    from chipwise.observe.demand.history import observed_demand
    from chipwise.observe.demand.records import Case, LeftOut, Skipped, month_index
    from chipwise.observe.demand.trend import trend_of
    from chipwise.observe.demand.view import ObservedDemand
    from chipwise.observe.goodput.fleet import attempt_log
    from chipwise.route.ledger import open_view
    from chipwise.route.load.pools import read_pools
    from chipwise.verbs.arguments import knowledge_of, own_telemetry

    if case not in list(Case):
        raise UnknownName("case", case, list(Case))
    if not 1 <= months <= 120:
        raise InputError("months", months, "1 to 120")
    know, now = knowledge_of(knowledge), time.time()
    begin = _since(since, now)
    this_month = month_index(know.today.year, know.today.month)
    first = this_month + 1 if start is None else _month_of(start)
    if first < this_month:
        raise InputError("start", str(start), f"a month that is not over: {know.today:%Y-%m} or later")
    named = [on] if isinstance(on, str) else list(on or ())
    try:
        chips = [exact_chip(name.strip()).id for text in named for name in text.split(",")]
    except UnknownName as error:
        raise UnknownName("on", str(error.value), load().chips, what="chip") from None
    theirs = read_pools(pools, know).pools
    telemetry = own_telemetry(store)
    with telemetry or nullcontext(), open_view(ledger, create=False) as book:
        observed = observed_demand(book, begin, now, lambda attempt: attempt_log(ledger, attempt), telemetry)
    demands = [
        WorkloadDemand(past=past, trend=trend_of(past.months, past.kind, first, months))
        for past in observed.pasts[:MOST_WORKLOADS]
    ]
    many = [
        Skipped(name=past.name, why=LeftOut.MANY, jobs=past.jobs, chip_hours=past.chip_hours)
        for past in observed.pasts[MOST_WORKLOADS:]
    ]
    rented = list(dict.fromkeys(chips or [pool.chip for pool in theirs if pool.family != "cpu"]))
    first_months = [past.months[0].name for past in observed.pasts if past.months]
    frame = Frame(
        name="observed",
        case=Case(case),
        source=f"jobs of ledger {Path(observed.ledger).name}"
        + (f" from {min(first_months)} on" if first_months else ""),
        day=know.today.isoformat(),
        first=first,
        months=months,
        pools=theirs,
        chips=rented,
    )
    answer = ObservedDemand(observed=observed, demands=demands, skipped=[*observed.skipped, *many], frame=frame)
    return answer if to is None else replace(answer, file=answer.write(Path(to)))


def _month_of(text: str) -> int:
    from datetime import datetime

    from chipwise.errors import InputError
    from chipwise.observe.demand.records import month_index

    try:
        month = datetime.strptime(text, "%Y-%m")
    except ValueError:
        raise InputError("start", text, "a month such as 2027-01") from None
    return month_index(month.year, month.month)


def observe_advice(
    pools: str | Path,
    ledger: str = "",
    *,
    since: str | float | None = None,
    policy: str | None = None,
    change: Mapping[str, int] | Sequence[str] | None = None,
    mix: str | Path | Sequence[str | Path] | None = None,
    store: str | Path | None = None,
    knowledge: Knowledge | None = None,
) -> PoolAdvice:
    """Say which pools are idle, saturated or sick, and what the same jobs would have met and cost on other pools.

    `pools` is the pools file of the ledger's router. The jobs since a day, or so long ago, are replayed by its `policy`
    on its pools, without what lay idle, with more where jobs waited, with a `change` of yours (``{"h100": 16}`` or
    ``["h100=16"]``) and on the pools of other files (`mix`). A `store` of telemetry tells of sick nodes.

    >>> observe_advice("examples/pools/local.yaml", "nowhere.db")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    chipwise.route.ledger.error.LedgerError: ledger nowhere.db: there is none; ...
    """
    import time

    from chipwise.errors import Refusal
    from chipwise.observe.advice.records import Mix
    from chipwise.observe.advice.replay import mixes, replayed
    from chipwise.observe.advice.usage import used_pools
    from chipwise.observe.advice.view import PoolAdvice
    from chipwise.observe.goodput.fleet import attempt_log
    from chipwise.observe.nodes.look import sick_by_pool
    from chipwise.route.estimates.options import Estimator
    from chipwise.route.estimates.predicted import Predictor
    from chipwise.route.ledger import open_view
    from chipwise.route.load.pools import read_pools
    from chipwise.route.policies import DEFAULT_POLICY, policy_list
    from chipwise.verbs.arguments import knowledge_of, own_telemetry

    know, now = knowledge_of(knowledge), time.time()
    begin = _since(since, now)
    read = read_pools(pools, know)
    wanted = _counts(change, {pool.name: pool.count for pool in read.pools})
    files = [mix] if isinstance(mix, str | Path) else list(mix or ())
    others = [Mix(name=Path(file).stem, pools=read_pools(file, know).pools) for file in files]
    telemetry = own_telemetry(store)
    with telemetry or nullcontext(), open_view(ledger, create=False) as book:
        jobs = book.jobs()
        if not jobs:
            raise Refusal("no job is in this ledger", "jobs that ran")
        span = max(begin, min(job.submitted for job in jobs)), now
        sick, problems = sick_by_pool(telemetry, read, book.uid, int(begin)) if telemetry is not None else ({}, [])
        used = used_pools(book, read.pools, span, know.economics, lambda attempt: attempt_log(ledger, attempt), sick)
        if not used:
            raise Refusal("no pool of the pools file has accelerators", "pools of GPUs or TPUs")
        routers = book.routers()
        named = policy or (routers[0].policy if routers else DEFAULT_POLICY)
        (name,) = policy_list(named)[:1]
        estimator = Estimator(know.economics, Predictor(calibration=know.calibration, know=know.economics))
        replay = replayed(book, [*mixes(used, wanted), *others], name, span, estimator, read.weights)
        return PoolAdvice(
            ledger=book.where,
            span=span,
            pools=used,
            replayed=replay,
            problems=problems,
            told_nodes=telemetry is not None,
        )


def _counts(change: Mapping[str, int] | Sequence[str] | None, pools: Mapping[str, int]) -> dict[str, int]:
    from chipwise.errors import InputError, UnknownName

    if isinstance(change, Mapping):
        pairs = [(name, str(count)) for name, count in change.items()]
    else:
        pairs = [(text.partition("=")[0].strip(), text.partition("=")[2].strip()) for text in change or ()]
    for name, count in pairs:
        if name not in pools:
            raise UnknownName("change", name, pools, what="pool")
        if not count.isdecimal() or int(count) > 10_000_000:
            raise InputError("change", f"{name}={count}", "a pool and its chips, such as h100=16")
    return {name: int(count) for name, count in pairs}
