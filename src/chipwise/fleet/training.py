"""Training runs of a demand: what each takes on each chip, in each pool, with failures and checkpoints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil, inf
from typing import TYPE_CHECKING

from chipwise.catalog import Accelerators, Chip
from chipwise.compare.decision import Refused
from chipwise.compare.terms import Candidate, Terms, at_least, ladder
from chipwise.compare.training.comparer import TrainingComparer
from chipwise.compare.training.row import TrainingRow
from chipwise.cost.checkpoint import state, write_seconds
from chipwise.cost.spot import Hazard, expected
from chipwise.errors import InputError
from chipwise.fleet.problem import Option, Pool, Run
from chipwise.fleet.sizing import Placed, Sizing, shut_out, source, within
from chipwise.units import GIGA, HOUR
from chipwise.workload.load import load_workload
from chipwise.workload.model import Workload

if TYPE_CHECKING:
    from chipwise.fleet.demand_spec import RunSpec, WorkSpec


SLACK = 1.05  # a run must be so much faster than its window for failures and checkpoints to fit in


def training_runs(sizing: Sizing, i: int, work: WorkSpec, train: RunSpec) -> list[Run]:
    """A run of each window of a workload that is trained."""
    try:
        workload = load_workload(source(sizing, i, work))
    except InputError as e:
        raise within(i, e) from None
    sizing.workloads[work.name] = workload
    calendar = sizing.buying.demand.calendar
    first = calendar.period(train.start or calendar.first)
    last = calendar.period(train.deadline) if train.deadline else calendar.count - 1
    spans = [(first, last)]
    if train.every:
        step = train.every // calendar.each
        spans = [(t, min(t + step - 1, last)) for t in range(first, last + 1, step)]
    hours = [p.hours for p in calendar.periods]
    window = min(sum(hours[a : b + 1]) for a, b in spans)
    options = tuple(_training(sizing, i, work, train, workload, window))
    names = [work.name] if len(spans) == 1 else [f"{work.name} {calendar.periods[a].name}" for a, _ in spans]
    sizing.works.update(dict.fromkeys(names, work.name))
    return [Run(name, a, b, options, train.split, train.queue or "") for name, (a, b) in zip(names, spans, strict=True)]


def _training(
    sizing: Sizing, i: int, work: WorkSpec, train: RunSpec, workload: Workload, window_h: float
) -> Iterable[Option]:
    out: list[Option] = []
    shut: dict[tuple[str, int], Pool] = {}
    for chip in sizing.chips(work):
        for row in _rows(sizing, work, train, workload, chip, window_h):
            for pool in sizing.pools(chip):
                if row.accelerators.count > pool.chips and not sizing.stock.joined[pool.id]:
                    continue  # no fabric joins its units
                options = _options(sizing, train, row, pool)
                if quota := sizing.stock.shut(pool.id):
                    shut.setdefault(quota, pool)
                else:
                    out += options
    if not out and shut:
        raise shut_out(work.name, shut)
    return [o for o in out if not any(_better(other, o) for other in out)]


def _better(one: Option, other: Option) -> bool:
    """Whether an option takes no more than another of the same place, and less of something."""
    if (one.pool, one.supply) != (other.pool, other.supply):
        return False
    mine, its = ((o.takes, o.units, o.hours, o.hours * o.paid) for o in (one, other))
    return mine != its and all(a <= b for a, b in zip(mine, its, strict=True))


def _rows(
    sizing: Sizing, work: WorkSpec, train: RunSpec, workload: Workload, chip: Chip, window_h: float
) -> list[TrainingRow]:
    """The counts named, or the fewest chips that meet the deadline and twice as many."""
    each = window_h * HOUR / train.runs / SLACK
    terms = Terms() if train.chips else Terms(deadline_s=each)
    fixed = TrainingComparer.of(workload, Terms(), sizing.buying.knowledge)
    place = replace(fixed, terms=terms)
    counts: list[Accelerators | None] = [at_least(chip, n) for n in train.chips] if train.chips else [None]
    rows: list[TrainingRow] = []
    host = at_least(chip, chip.fabric.host_chips)
    while counts:
        candidate = Candidate(chip, counts.pop(0))
        got = place.modelled(candidate, fewest=True)
        if isinstance(got, Refused):
            if not rows or train.chips:
                sizing.refused.append((work.name, str(got.accelerators or chip.id), _why(got.reason, got.unlock)))
            continue
        rows.append(got)
        larger = [a for a in ladder(chip) if a.count > got.accelerators.count]
        if not train.chips and len(rows) == 1 and larger:
            counts.append(larger[0])
            counts += [host] if host.count > larger[0].count else []  # often the only instances
            place = fixed
    return rows


def _why(reason: str, unlock: str) -> str:
    return f"{reason}; {unlock}" if unlock else reason


def _options(sizing: Sizing, train: RunSpec, row: TrainingRow, pool: Pool) -> list[Option]:
    """A row in a pool: on held units, and on each supply by the hour."""
    name = row.prediction.workload.name
    units = ceil(row.accelerators.count / pool.chips)
    spare = ceil(units * sizing.buying.demand.spec.headroom.training)
    out: list[Option] = []
    supplies = sizing.stock.of(pool.id)
    held = any(not s.hourly for s in supplies)
    for supply in ([""] if held else []) + [s.id for s in supplies if s.hourly]:
        spot = any(s.id == supply and s.pricing == "spot" for s in supplies)
        wall, billed = _expected(sizing, row, pool, units, spot)
        if wall == inf:
            sizing.refused.append((name, supply, "interrupted so often that it never ends"))
            continue
        out.append(Option(pool.id, supply, units, wall * train.runs / HOUR, spare, billed / wall))
    work = next(w for w, known in sizing.workloads.items() if known is row.prediction.workload)
    sizing.placed[work, pool.chip, units * pool.chips] = Placed(
        work, row.accelerators, str(row.prediction.layout), row.prediction.duration, row.prediction
    )
    return out


def _expected(sizing: Sizing, row: TrainingRow, pool: Pool, units: int, spot: bool) -> tuple[float, float]:
    """Seconds of a run with checkpoints, failures and interruptions: from beginning to end, and those billed."""
    know, cloud = sizing.buying.knowledge.economics, sizing.stock.clouds[pool.id] or "owned"
    chip, chips = row.accelerators.chip, row.accelerators.count
    rate = know.value("failure_chip_hour", cloud) * chips
    if spot:
        rate += know.value("spot_per_hour", cloud) * (row.accelerators.slices if row.accelerators.shape else units)
    hosts = max(1, ceil(chips / chip.fabric.host_chips))
    write = write_seconds(
        state(row.prediction.workload).total,
        hosts,
        know.value("checkpoint_gb_s_node", cloud) * GIGA,
        know.value("checkpoint_gb_s_all", cloud) * GIGA,
    )
    restart = know.value("restart_s", cloud) + (0.0 if spot else know.value("repair_s"))
    hazard = Hazard(HOUR / rate if rate > 0 else inf, write, restart, know.value("spot_wait_s") if spot else 0.0)
    found = expected(sizing.estimate(row.prediction.duration, True), hazard)
    return found.wall_s, found.billed_s
