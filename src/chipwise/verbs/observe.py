"""Verbs of what really happened: logs read and judged, and where time went."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipwise.catalog import Accelerators
    from chipwise.compare.training.predict import PricedPrediction
    from chipwise.knowledge import Knowledge
    from chipwise.observe.agent.view import AgentReading
    from chipwise.observe.goodput.view import FleetGoodput, RunGoodput
    from chipwise.observe.health.view import HealthReport
    from chipwise.observe.jobs.look import ServersOf
    from chipwise.observe.jobs.view import JobObservation, JobObservations
    from chipwise.observe.learn.view import AcceptedTelemetry, TelemetryLesson
    from chipwise.observe.monitoring.view import Dashboards, Rules
    from chipwise.observe.scrape.view import Devices
    from chipwise.observe.view import LogReading
    from chipwise.verbs.arguments import WorkloadLike


def read_log(source: str | Path, *, format: str | None = None, against: PricedPrediction | None = None) -> LogReading:
    """Read what a program printed: steps of training, windows of serving, faults, metrics.

    `source` is a file (gzip as well) or ``"-"`` for standard input. The `format` is found by what the lines say, unless
    it is named. `against` is a prediction of the same run: the reading then has actual over predicted.

    >>> log = read_log("examples/logs/maxtext.log")
    >>> log.log.format, len(log.steps), log.log.typical("step_seconds")
    ('maxtext', 10, 5.667)
    """
    from chipwise.observe.against import ratios
    from chipwise.observe.log import read_lines
    from chipwise.observe.text import lines_of
    from chipwise.observe.view import LogReading

    log = read_lines(lines_of(str(source)), format)
    return LogReading(str(source), log, ratios(log, against.prediction) if against is not None else ())


def diagnose(
    source: str | Path,
    *,
    format: str | None = None,
    against: PricedPrediction | None = None,
    on: str | None = None,
    until: str | None = None,
    knowledge: Knowledge | None = None,
) -> HealthReport:
    """Judge a run by what it printed: hung, slow, slower than it was, stragglers, faults, each with what it has cost.

    `against` is a prediction of the same run: without one nobody sees a run that was slow from its first step. `on`
    names the chips where no prediction does, for chip-hours and dollars. `until` is a moment to which the run is known
    to have gone on (``"now"``, ``"2026-11-02T10:00:00Z"``); the log's last stamp otherwise.

    >>> report = diagnose("examples/logs/slow.log", on="h100:8")
    >>> report.worst.value, [finding.condition.value for finding in report.findings]
    ('warning', ['slowed', 'fault'])
    """
    import time

    from chipwise.catalog import parse
    from chipwise.observe.against import ratios
    from chipwise.observe.clock import read_moment
    from chipwise.observe.health.diagnosis import Setting, unjudged
    from chipwise.observe.health.diagnosis import diagnose as findings_of
    from chipwise.observe.health.view import HealthReport
    from chipwise.observe.log import read_lines
    from chipwise.observe.text import lines_of

    end = None if until is None else read_moment(until, "until", time.time())
    chips = against.accelerators if against is not None else parse(on) if on is not None else None
    log = read_lines(lines_of(str(source)), format)
    setting = Setting(
        ratios=ratios(log, against.prediction) if against is not None else (),
        until=end,
        chips=chips.count if chips is not None else None,
        chips_of_host=chips.chip.fabric.host_chips if chips is not None else None,
        usd_per_chip_hour=_usd_per_chip_hour(chips, knowledge),
    )
    return HealthReport(str(source), log, findings_of(log, setting), unjudged(log, setting))


def measure_goodput(
    source: str | Path,
    *,
    format: str | None = None,
    on: str | None = None,
    until: str | None = None,
    knowledge: Knowledge | None = None,
) -> RunGoodput:
    """Say where the time of a run went by its log: steps that count, and every class of loss.

    `on` names the chips, for chip-hours and dollars; `until` is a moment to which the run is known to have gone on.

    >>> run = measure_goodput("examples/logs/slow.log", on="h100:8")
    >>> sum(run.account.seconds.values()) == run.account.elapsed, 0 < run.account.goodput < 1
    (True, True)
    """
    import time

    from chipwise.catalog import parse
    from chipwise.errors import Refusal
    from chipwise.observe.clock import read_moment
    from chipwise.observe.goodput.from_log import Span, seconds_by_use
    from chipwise.observe.goodput.records import Account
    from chipwise.observe.goodput.view import RunGoodput
    from chipwise.observe.log import read_lines
    from chipwise.observe.text import lines_of

    end = None if until is None else read_moment(until, "until", time.time())
    chips = parse(on) if on is not None else None
    log = read_lines(lines_of(str(source)), format)
    seconds = seconds_by_use(log, Span(ended=end))
    if seconds is None:
        what = "no step" if not log.steps else "no time: neither stamps nor what a step took"
        raise Refusal(f"{source} tells {what}", "goodput needs steps with time stamps, or with their seconds")
    price = _usd_per_chip_hour(chips, knowledge)
    account = Account()
    usd_per_s = price * chips.count / 3600 if price is not None and chips is not None else None
    account.add_account(seconds, chips.count if chips is not None else None, usd_per_s)
    return RunGoodput(str(source), account, any(step.at is not None for step in log.steps))


def fleet_goodput(ledger: str = "", *, by: str = "pool", month: str | None = None, logs: bool = False) -> FleetGoodput:
    """Say where the time of a router's jobs went, by ``job``, ``pool``, ``team``, ``owner`` or ``month``.

    By the ledger's attempts, in a `month` (``"2026-11"``) or ever; with `logs` also by what they printed.

    >>> fleet_goodput("nowhere.db", by="chip")
    Traceback (most recent call last):
        ...
    chipwise.errors.UnknownName: by: unknown name 'chip'; expected one of job, month, owner, pool, team
    """
    from chipwise.errors import UnknownName
    from chipwise.observe.goodput.fleet import By
    from chipwise.observe.goodput.fleet import fleet_goodput as run

    if by not in list(By):
        raise UnknownName("by", by, list(By))
    return run(ledger, By(by), month, logs)


def observe_job(
    job: str | int,
    ledger: str = "",
    *,
    attempt: int | None = None,
    pools: str | Path | None = None,
    store: str | Path | None = None,
    knowledge: Knowledge | None = None,
) -> JobObservation:
    """Say how one job of a ledger really runs: steps, health, goodput, against its prediction, and how much is left.

    By what its newest `attempt` printed, or the one of a number, where this machine or the service can read it. With
    `pools`, its router's pools file, latencies of one that serves, by a `store` of telemetry (by default one's own).

    >>> observe_job(1, ledger="nowhere.db")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    chipwise.route.ledger.error.LedgerError: ledger nowhere.db: there is none; ...
    """
    from chipwise.observe.jobs.look import look_at_job

    with _servers(pools, store, knowledge) as servers:
        return look_at_job(ledger, str(job), attempt, servers)


def observe_jobs(
    ledger: str = "",
    *,
    state: str | None = "running",
    owner: str | None = None,
    limit: int | None = None,
    tell: bool = False,
    pools: str | Path | None = None,
    store: str | Path | None = None,
    knowledge: Knowledge | None = None,
) -> JobObservations:
    """Say how jobs of a ledger really run, those under way unless another `state` is named, the newest first.

    `tell`: routers reckon with what those under way take by their steps, instead of what was predicted. `pools` and
    `store` as of `observe_job`.

    >>> observe_jobs("nowhere.db")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    chipwise.route.ledger.error.LedgerError: ledger nowhere.db: there is none; ...
    """
    from chipwise.observe.jobs.look import look_at_jobs

    with _servers(pools, store, knowledge) as servers:
        return look_at_jobs(ledger, state, owner, limit, tell, servers)


@contextmanager
def _servers(
    pools: str | Path | None, store: str | Path | None, knowledge: Knowledge | None
) -> Iterator[ServersOf | None]:
    """What a store has of servers, and the chips that they have; None without a pools file or a store."""
    from chipwise.errors import InputError
    from chipwise.verbs.arguments import knowledge_of, own_telemetry

    if pools is None:
        if store:
            raise InputError("store", str(store), "pools beside it: the chips that servers have")
        yield None
        return
    from chipwise.observe.serving.counters import server_counters
    from chipwise.observe.serving.expected import Servers
    from chipwise.route.load.pools import read_pools

    known = knowledge_of(knowledge)
    by_name = {pool.name: pool for pool in read_pools(pools, known).pools}
    telemetry = own_telemetry(store)
    if telemetry is None:
        yield None
        return
    with telemetry:
        yield lambda book: Servers(
            pools=by_name, counters=server_counters(telemetry, book), calibration=known.calibration
        )


def learn_from_runs(
    file: str | Path | None = None,
    *,
    pools: str | Path | None = None,
    ledger: str = "",
    store: str | Path | None = None,
    accept: bool = False,
    knowledge: Knowledge | None = None,
) -> TelemetryLesson:
    """Learn from runs that were observed: what they change of predictions, and with `accept` change it.

    The `file` names logs with the workload and the chips that they were of; `pools` is a pools file instead, for the
    attempts of a `ledger`'s jobs; those whose devices were throttled or faulty by a `store` of telemetry (by default
    one's own) are left out. Sick runs and outliers are left out. `accepted_telemetry` says what counts,
    and takes back what was accepted last.

    >>> answer = learn_from_runs("examples/observe/runs.yaml")
    >>> [(change.after.chip, change.after.runs) for change in answer.lesson.groups], answer.accepted
    ([('h100', 5)], None)
    """
    from contextlib import nullcontext

    from chipwise.catalog import telemetry_files
    from chipwise.catalog.calibration import load_calibration
    from chipwise.errors import Conflict, MissingInput, Refusal
    from chipwise.observe.learn.devices import unfit_attempts
    from chipwise.observe.learn.lesson import lesson
    from chipwise.observe.learn.runs import sources_in, sources_of_jobs
    from chipwise.observe.learn.view import TelemetryLesson
    from chipwise.verbs.arguments import knowledge_of, own_telemetry

    if file is not None and pools is not None:
        raise Conflict("file", "pools")
    if file is None and pools is None:
        raise MissingInput([["file"], ["pools"]])
    known = knowledge_of(knowledge)
    telemetry = own_telemetry(store) if pools is not None else None
    with telemetry or nullcontext():
        unfit = unfit_attempts(telemetry) if telemetry is not None else {}
    sources = sources_in(Path(file)) if file is not None else sources_of_jobs(ledger, Path(str(pools)), unfit)
    answer = lesson(sources, known.calibration)
    path = None
    if accept:
        if not answer.changed:
            raise Refusal("there is nothing to accept", "3 healthy runs of a kind of program on a chip are needed")
        path = telemetry_files.write([change.after for change in answer.groups], answer.kept, known.today)
        load_calibration.cache_clear()
    return TelemetryLesson(lesson=answer, accepted=path)


def accepted_telemetry(*, revert: bool = False) -> AcceptedTelemetry:
    """Say what was accepted of runs that were observed; with `revert` take back what was accepted last.

    >>> accepted_telemetry().groups
    []
    """
    from chipwise.catalog import telemetry_files
    from chipwise.catalog.calibration import load_calibration
    from chipwise.observe.learn.view import AcceptedTelemetry

    reverted = telemetry_files.revert() if revert else None
    load_calibration.cache_clear()
    return AcceptedTelemetry(telemetry=telemetry_files.read(), reverted=reverted)


def observe_node(
    only: Sequence[str] = (),
    *,
    interval: str | float = "1s",
    store: str | None = None,
    store_interval: str | float = "10s",
    rounds: int | None = 1,
    listen: str | None = None,
    token_file: str | Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> AgentReading:
    """Read this node's devices, host, kernel log and cloud again and again, and keep or serve what they say.

    `only` are instruments (``"nvidia"``, ``"amd"``, ``"tpu"``, ``"host"``, ``"kernel"``, ``"notices"``); all that there
    are by default. `store` keeps what they say every `store_interval`, `listen` (``"127.0.0.1:9466"``) serves it to
    Prometheus. `rounds` is how often it is looked at, ``None`` until it is stopped; `tell` hears of what fails.

    >>> reading = observe_node(["host"])
    >>> reading.instruments[0].name, any(s.series == "host_memory_used" for s in reading.samples)
    ('host', True)
    """
    from contextlib import ExitStack

    from chipwise.errors import InputError, Refusal
    from chipwise.observe.agent.agent import KINDS, LEAST_INTERVAL_S, Agent, instruments, keep, this_host
    from chipwise.observe.agent.view import AgentReading
    from chipwise.verbs.arguments import seconds_of

    for name in only:
        if name not in KINDS:
            raise InputError("only", name, f"one of {', '.join(KINDS)}")
    every, keep_every = seconds_of(interval, "interval"), seconds_of(store_interval, "store_interval")
    if every < LEAST_INTERVAL_S:
        raise InputError("interval", str(interval), f"{LEAST_INTERVAL_S} s or more")
    if keep_every < 1:
        raise InputError("store_interval", str(store_interval), "1 s or more: the store has whole seconds")
    say = tell or (lambda words: None)
    there, absent = instruments(list(dict.fromkeys(only)) or list(KINDS))
    if only and absent:
        raise Refusal(f"{absent[0].name}: {absent[0].problem}", "an instrument that is here, or no name for all")
    with ExitStack() as open_things:
        telemetry = None
        if store is not None:
            from chipwise.observe.store.store import open_store

            telemetry = open_things.enter_context(open_store(store))
        agent = open_things.enter_context(Agent(there, absent, every, this_host()))
        if listen is not None:
            from chipwise.io.endpoint import Endpoint, read_token
            from chipwise.observe.agent.page import page

            token = read_token(Path(token_file) if token_file is not None else None)
            endpoint = Endpoint(listen, token, lambda: page(agent.look()[0]))
            endpoint.start()
            open_things.callback(endpoint.stop)
            say(f"port {endpoint.port}, /metrics{', with the bearer token' if token else ''}")
        samples, states = keep(agent, telemetry, every if telemetry is None else keep_every, rounds, say)
        return AgentReading(host=agent.host, rounds=rounds or 0, instruments=states, samples=samples)


def devices(store: str = "", *, since: str | float = "5min") -> Devices:
    """Show devices, and services, by the newest value of each series that is no older than `since`.

    >>> devices("nowhere.db")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: store: 'nowhere.db' is not accepted; expected a store; ...
    """
    import time

    from chipwise.observe.scrape.view import Devices
    from chipwise.observe.store.store import open_store
    from chipwise.verbs.arguments import seconds_of

    oldest = int(time.time() - seconds_of(since, "since"))
    with open_store(store, create=False) as kept:
        return Devices(store=kept.where, newest=kept.newest(oldest))


def alert_rules(*, about: Sequence[str] = (), slo: WorkloadLike | None = None) -> Rules:
    """Write rules for Prometheus: one set of series from whichever exporters there are, and alerts on them.

    `about` are ``"devices"``, ``"serving"``, ``"router"``, ``"jobs"``; all of them by default. `slo` is a workload of
    serving, or its file: its SLO is watched. `text` of the answer is the file.

    >>> rules = alert_rules(about=["router"])
    >>> [group["name"] for group in rules.groups], len(rules.alerts) > 3
    (['chipwise router'], True)
    """
    from chipwise.errors import InputError, UnknownName
    from chipwise.observe.monitoring.alerts import alerts
    from chipwise.observe.monitoring.records import Topic
    from chipwise.observe.monitoring.rule_file import groups
    from chipwise.observe.monitoring.view import Rules
    from chipwise.verbs.arguments import any_workload
    from chipwise.workload.serve import ServingWorkload

    unknown = next((name for name in about if name not in list(Topic)), None)
    if unknown is not None:
        raise UnknownName("about", unknown, list(Topic))
    is_file = not isinstance(slo, str | Path) or Path(slo).is_file()
    workload = any_workload(slo) if slo is not None and is_file else None
    bounds = workload.serve.slo if isinstance(workload, ServingWorkload) else ()
    if slo is not None and not bounds:
        raise InputError("slo", str(slo), "a workload file of serving that has an SLO (slo: ttft, tpot, itl, e2e)")
    topics = [topic for topic in Topic if topic in about or not about]
    if bounds and Topic.SERVING not in topics:
        raise InputError("about", ", ".join(about), "serving too: an SLO is watched there")
    return Rules(groups=groups(topics, bounds), alerts=alerts(topics, bounds))


def dashboards(
    to: str | Path | None = None, *, site: str | None = None, energy_price: float | str | None = None
) -> Dashboards:
    """Make dashboards for Grafana, over what `alert_rules` records: fleet, pools, jobs, serving and cost.

    `to` is a folder for their files. Electricity is reckoned at the price and PUE of a `site`, or at an `energy_price`.

    >>> sorted(dashboards().documents)
    ['cost', 'fleet', 'job', 'pool', 'serving']
    """
    from dataclasses import replace

    from chipwise.catalog.economics import own_site
    from chipwise.errors import InputError
    from chipwise.observe.monitoring.dashboards import Electricity
    from chipwise.observe.monitoring.dashboards import dashboards as documents
    from chipwise.observe.monitoring.view import Dashboards

    place = own_site(site, energy_price)
    if place.usd_kwh is None:
        raise InputError("site", place.id, "a place whose price of electricity is known, or an energy price beside it")
    answer = Dashboards(documents=documents(Electricity(usd_per_kwh=place.usd_kwh.value, pue=place.pue.value)))
    return answer if to is None else replace(answer, files=answer.write(Path(to)))


def _usd_per_chip_hour(chips: Accelerators | None, knowledge: Knowledge | None) -> float | None:
    """What the cheapest offer that holds chips asks for; None where nobody lists one."""
    from chipwise.prices import cheapest_of
    from chipwise.verbs.arguments import knowledge_of

    if chips is None:
        return None
    known = knowledge_of(knowledge)
    rental = cheapest_of(chips, today=known.today, book=known.prices)
    return rental.price.usd_per_chip_hour if rental is not None else None
