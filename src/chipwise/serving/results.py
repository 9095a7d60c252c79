"""The two questions about a served model: what its users see at a load, and the largest load within its SLO."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from chipwise.catalog import Accelerators
from chipwise.errors import InputError, Refusal
from chipwise.launch.described import Replicas
from chipwise.launch.launch import Launch, launch
from chipwise.predict.estimate import Estimate
from chipwise.present.result import Result
from chipwise.serving import capacity_view, view
from chipwise.serving.capacity import COUNT, Capacity, CapacitySearch, FrontPoint, RefusedSplit, front, search
from chipwise.serving.curve import LoadCurve, load_curve
from chipwise.serving.disaggregation import disaggregated, search_pools
from chipwise.serving.launched import replicas_of
from chipwise.serving.limits import MOST_REQUESTS
from chipwise.serving.measures import Measures, Spread
from chipwise.serving.service import Served, Service, ServingTarget, can_prefill_apart, run
from chipwise.serving.sizing import AUTO, Progress, ServiceRequest, check_chips, overloaded, read_pools, service_of
from chipwise.serving.split import Split
from chipwise.workload.serve import ServingWorkload

JOB = 1_000_000  # requests that are simulated, at most: the others of an offline job take as long
FEWEST = 10_000  # requests of a stream


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ServingSimulation(Result):
    """What users of a service see at a load: latencies and rates with 90 % intervals, and whether the SLO is met."""

    VERB: ClassVar[str] = "serving simulate"
    accelerators: Accelerators
    served: Served
    request: ServiceRequest
    seed: int = 0
    curve: LoadCurve | None = None

    @property
    def workload(self) -> ServingWorkload:
        """What is served."""
        return self.service.target.workload

    @property
    def service(self) -> Service:
        """The replicas, their split, stack and settings."""
        return self.served.service

    @property
    def measures(self) -> Measures:
        """Everything that was measured in the simulation: SLO, goodput, queue, KV cache, power."""
        return self.served.measures

    @property
    def ttft(self) -> Spread:
        """Seconds to the first token, by percentile."""
        return self.served.ttft

    @property
    def tpot(self) -> Spread | None:
        """Mean seconds between the tokens of a request, by percentile; None: every answer is one pass."""
        return self.served.tpot

    @property
    def itl(self) -> Spread | None:
        """Seconds of every gap between tokens, by percentile; None: every answer is one pass."""
        return self.served.itl

    @property
    def e2e(self) -> Spread:
        """Seconds from arrival to the last token, by percentile."""
        return self.served.e2e

    @property
    def slo_met(self) -> bool:
        """Whether every bound of the SLO is met."""
        return self.measures.holds

    @property
    def goodput(self) -> float:
        """Requests per second that are within every bound by themselves."""
        return self.measures.goodput

    def plot(self, target: str | Path) -> None:
        """Draw latency against load as .svg or .png; needs the `curve`."""
        from chipwise.serving.plot import draw

        if self.curve is None:
            raise InputError("curve", "none", "a simulation with `curve=True`")
        draw(self.curve, Path(target))

    record = view.record
    blocks = view.blocks
    flat_rows = view.flat_rows


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ServingCapacity(Result):
    """The largest load within an SLO: of the best split and of every other one, with the Pareto front."""

    VERB: ClassVar[str] = "serving capacity"
    accelerators: Accelerators
    search: CapacitySearch
    seed: int = 0
    job: Served | None = None  # an offline job, whole

    @property
    def workload(self) -> ServingWorkload:
        """What is served."""
        return self.search.target.workload

    @property
    def best(self) -> Capacity:
        """The split and settings with the largest load."""
        return self.search.best

    @property
    def load(self) -> Estimate:
        """The largest load of the best split: requests/s, or users of a closed loop."""
        return self.search.best.load

    @property
    def rows(self) -> tuple[Capacity, ...]:
        """Every split that can be, best first."""
        return self.search.capacities

    @property
    def refused(self) -> tuple[RefusedSplit, ...]:
        """Splits that can't be, and why."""
        return self.search.refused

    @property
    def front(self) -> list[FrontPoint]:
        """The Pareto front of speed for a user against output of a chip."""
        return front(self.search.capacities)

    @property
    def needed_chips(self) -> int:
        """Chips of the best split that sustain the workload's own load; 0: it has none."""
        return self.search.needed_chips

    @property
    def launchable(self) -> Replicas:
        """The best replicas as `launch` takes them."""
        return replicas_of(self.best.service, self.accelerators, duration=self.job.duration if self.job else None)

    def launch(self, tool: str | None = None, file: str | Path | None = None) -> Launch:
        """The command, config or task that starts the best replicas; for a `tool`, or by the ending of a `file`."""
        return launch(self.launchable, tool, file)

    record = capacity_view.record
    blocks = capacity_view.blocks
    flat_rows = capacity_view.flat_rows


def simulate_service(
    target: ServingTarget,
    acc: Accelerators,
    request: ServiceRequest,
    count: int | None = None,
    seed: int = 0,
    curve: bool = False,
    progress: Progress | None = None,
) -> ServingSimulation:
    """Simulate the workload's requests on chips; refused where more arrives than they sustain.

    `count` requests are simulated (default: 10,000, or 600 a replica where that is more; all of a trace or an offline
    job); `curve` adds latency at other loads.
    """
    serve = target.workload.serve
    if count is not None and not 1 <= count <= MOST_REQUESTS:
        raise InputError("requests", count, f"a whole number from 1 to {MOST_REQUESTS:,}")
    if curve and serve.arrival.kind == "offline":
        raise Refusal("an offline job has one load: there is no latency against load to plot")
    of = service_of(target, acc.count, request, seed, progress)
    served = run(of, count=count or _enough(of), seed=seed, settle=True)
    if served.measures.saturated:
        raise overloaded(served, seed)
    return ServingSimulation(acc, served, request, seed, load_curve(of, seed, progress) if curve else None)


def _enough(of: Service) -> int:
    """Requests to simulate: of a stream so many a replica, or a large fleet would be filling all the time; 0: usual."""
    serve = of.target.workload.serve
    if serve.arrival.kind not in ("poisson", "bursty"):
        return min(serve.requests, JOB)
    return min(max(FEWEST, COUNT * of.replicas), JOB)


def find_capacity(
    target: ServingTarget,
    acc: Accelerators,
    split: Split | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    disaggregate: str | None = None,
) -> ServingCapacity:
    """The largest load of every split of replicas over chips, or of one split alone.

    `disaggregate`: "2:6" of them for prefill and decode, or "auto": where that sustains more.
    """
    disaggregate = None if disaggregate is None else disaggregate.strip().lower()
    pools = None if disaggregate in (None, AUTO) else read_pools(str(disaggregate), AUTO)
    if split is not None:
        check_chips(split, sum(pools) if pools else None, acc.count)
    only = None if split is None else [split]
    if disaggregate is not None:
        can_prefill_apart(target.workload.model, disaggregate)
    if pools is None:
        also = partial(disaggregated, seed=seed, progress=progress) if disaggregate == AUTO else None
        splits = search(target, acc.count, seed, progress=progress, only=only, also=also)
    else:
        splits = search_pools(target, acc.count, pools, seed, progress, only)
    serve = target.workload.serve
    offline = serve.arrival.kind == "offline"
    job = run(splits.best.service, count=min(serve.requests, JOB), seed=seed) if offline else None
    return ServingCapacity(acc, splits, seed, job)
