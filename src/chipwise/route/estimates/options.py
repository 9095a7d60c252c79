"""Every variant of a job in every pool: an `Option`, or `Infeasible` with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from chipwise.catalog.economics import Economics, economics
from chipwise.errors import Refusal
from chipwise.predict.estimate import Estimate
from chipwise.route.estimates.matching import chips_taken, declared_runtime, moving_cost
from chipwise.route.estimates.predicted import Predicted, Predictor, Progress
from chipwise.route.estimates.stretch import stretched
from chipwise.route.job import Job, Variant
from chipwise.route.option import Infeasible, Option
from chipwise.route.pool import Pool
from chipwise.units import HOUR, format_seconds


@dataclass(slots=True)
class Estimator:
    """What options are made with. Predictions are kept: a thousand similar jobs are predicted once."""

    know: Economics = field(default_factory=economics)
    predictor: Predictor = field(default_factory=Predictor)
    launched: bool = False  # jobs are to run and not only to be simulated

    def options(self, job: Job, pools: Sequence[Pool]) -> tuple[list[Option], list[Infeasible]]:
        """The ways to run a job, in the order of its variants, and those that can't be with why."""
        feasible: list[Option] = []
        families = {variant.family for variant in job.variants}
        infeasible = [
            Infeasible(
                pool.name,
                "",
                f"no variant is for {pool.family} chips such as {pool.chip}",
                f"a variant of the family {pool.family}",
            )
            for pool in pools
            if pool.family not in families
        ]
        for variant in job.variants:
            for pool in pools:
                if pool.family != variant.family:
                    continue
                try:
                    feasible.append(self._option(job, variant, pool))
                except Refusal as refusal:
                    infeasible.append(Infeasible(pool.name, variant.name, refusal.reason, refusal.unlock))
        return feasible, infeasible

    def _option(self, job: Job, variant: Variant, pool: Pool) -> Option:
        chips, topology = chips_taken(job, variant, pool, self.launched)
        usd_once, moving = moving_cost(job.constraints.data, pool, self.know)
        work = self._work(job, variant, pool, chips, topology)
        run = stretched(work.seconds, pool, chips, job.checkpoint, work.write_s, self.know)
        if run.seconds is None:
            raise Refusal(
                "it is interrupted so often there that it never ends",
                "checkpoints that are near enough (checkpoint.every), or a pool that is not spot",
            )
        if run.seconds.value > pool.max_seconds:
            raise Refusal(
                f"it takes {format_seconds(run.seconds.value)}, the pool allows {format_seconds(pool.max_seconds)}",
                "more chips, or a pool that allows longer runs",
            )
        late = "" if run.seconds.high <= pool.max_seconds else "may pass the pool's longest run"
        usd_hour = chips * pool.usd_per_chip_hour
        watts = chips * pool.watts_chip * work.share if work.watts is None else work.watts
        notes = (work.note, run.note, moving, late, _over_budget(job, run.seconds, usd_hour, usd_once))
        return Option(
            pool.name,
            variant.name,
            chips,
            topology,
            run.seconds,
            usd_hour,
            watts,
            work.layout or variant.layout,
            usd_once,
            "; ".join(part for part in notes if part),
        )

    def _work(self, job: Job, variant: Variant, pool: Pool, chips: int, topology: str) -> Predicted:
        """What the job takes without interruptions: as given where something is, else as predicted."""
        given = declared_runtime(job, pool)
        if given is not None:
            return Predicted(given.seconds, watts=given.watts, note=f"given for {given.on}")
        if not job.workload:
            names_declared = ", ".join(declared.on for declared in job.given)
            names = list(dict.fromkeys((pool.name, pool.chip, pool.family)))
            raise Refusal(
                f"no estimate for {', '.join(names[:-1])}{' or ' if names[1:] else ''}{names[-1]} "
                f"(there are some for {names_declared})",
                _near_name(job, names) or "an estimate of its own, or a workload to predict",
            )
        return self.predictor.predicted(job, variant, pool, chips, topology)


def _near_name(job: Job, names: Sequence[str]) -> str:
    """A name of an estimate that is nearly one of a pool's; empty where none is."""
    for declared in job.given:
        near = get_close_matches(declared.on.lower(), names, n=1, cutoff=0.75)  # h1000 is h100, and not h200
        if near:
            return f"{near[0]} in place of {declared.on}?"
    return ""


def _over_budget(job: Job, seconds: Estimate, usd_hour: float, usd_once: float) -> str:
    usd = usd_hour * seconds.value / HOUR + usd_once
    return f"over the budget of ${job.budget:,.2f}" if usd > job.budget else ""


def estimator(check: bool = False, progress: Progress | None = None) -> Estimator:
    """An estimator of jobs that are to run; with `check` it compiles programs that were not checked yet."""
    return Estimator(predictor=Predictor(check=check, progress=progress), launched=True)


_default: list[Estimator] = []


def options(job: Job, pools: Sequence[Pool], using: Estimator | None = None) -> tuple[list[Option], list[Infeasible]]:
    """The ways to run a job, and those that can't be; with the catalog's own knowledge unless told.

    >>> from chipwise.route.load import load_jobs
    >>> [job] = load_jobs("name: hello\\ncommand: [echo, hello]\\nestimates: {cpu: 5s}", now=0.0)
    >>> pools = [Pool("here", "local", "cpu", "cpu", 2), Pool("v5e", "local", "v5e", "tpu", 8)]
    >>> feasible, infeasible = options(job, pools)
    >>> feasible[0].pool, feasible[0].chips, [u.pool for u in infeasible]
    ('here', 1, ['v5e'])
    """
    if using is None:
        if not _default:
            _default.append(estimator())
        using = _default[0]
    return using.options(job, pools)
