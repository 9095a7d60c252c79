"""A service sized to its chips: the split that is named or the best one, how many replicas, and what they sustain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from chipwise.errors import Conflict, InputError, NoLayout, Refusal
from chipwise.serving.capacity import CapacitySearch, capacity_of, search, trial_requests
from chipwise.serving.limits import DEFAULT_ROUTER, LARGEST, MOST_REPLICAS, ROUTERS
from chipwise.serving.service import Served, Service, ServingTarget, service
from chipwise.serving.setup import engine_config
from chipwise.serving.split import Split
from chipwise.serving.step_times import EngineConfig

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """How a model shall be served; None: as the search or the stack has it.

    >>> ServiceRequest(router="random")
    Traceback (most recent call last):
        ...
    chipwise.errors.InputError: router: 'random' is not accepted; expected one of round_robin, least_loaded, prefix
    """

    split: Split | None = None
    replicas: int | None = None
    disaggregate: tuple[int, int] | None = None  # replicas for prefill, replicas for decode
    router: str = DEFAULT_ROUTER
    max_batch: int | None = None  # sequences of a replica at once
    chunk: int | None = None  # tokens of an iteration

    def __post_init__(self) -> None:
        if self.router not in ROUTERS:
            raise InputError("router", self.router, f"one of {', '.join(ROUTERS)}")
        if self.disaggregate is not None and self.replicas is not None:
            raise Conflict("replicas", "disaggregate", "it says both numbers")
        limits = {"replicas": MOST_REPLICAS, "max_batch": LARGEST, "chunk": LARGEST}
        for name, most in limits.items():
            value = getattr(self, name)
            if value is not None and not 1 <= value <= most:
                raise InputError(name, value, f"a whole number from 1 to {most:,}")

    @property
    def total_replicas(self) -> int | None:
        """Replicas in all, where their number is named."""
        return sum(self.disaggregate) if self.disaggregate else self.replicas

    def settings(self, target: ServingTarget) -> EngineConfig:
        """The stack's own settings but for those named."""
        own = engine_config(target.stack)
        return replace(
            own, most_sequences=self.max_batch or own.most_sequences, most_tokens=self.chunk or own.most_tokens
        )


AUTO = "auto"  # of disaggregation: where it sustains more


def read_pools(text: str, other: str = "") -> tuple[int, int]:
    """Replicas for prefill and replicas for decode; `other` words are accepted elsewhere.

    >>> read_pools("2:6")
    (2, 6)
    """
    sides = text.split(":")
    if len(sides) != 2 or not all(side.strip().isdecimal() and 0 < int(side) <= MOST_REPLICAS for side in sides):
        accepted = "replicas for prefill and replicas for decode, such as 2:6"
        raise InputError("disaggregate", text, accepted + (f", or {other}" if other else ""))
    return int(sides[0]), int(sides[1])


def check_chips(split: Split, replicas: int | None, chips: int) -> None:
    """Refuse more replicas than the chips hold, with the numbers."""
    equation = f"tp({split.tp}) * pp({split.pp}) * dp({split.dp})"
    if replicas is not None:
        equation += f" * replicas({replicas})"
    need = split.chips * (replicas or 1)
    if need > chips:
        raise NoLayout(f"{equation} = {need} is more than chips({chips})", "a smaller split or more chips would do")


def service_of(
    target: ServingTarget, chips: int, request: ServiceRequest, seed: int = 0, progress: Progress | None = None
) -> Service:
    """The service that a request describes; a split that is not named is the one with the largest load."""
    check_chips(request.split or Split(), request.total_replicas, chips)
    split = request.split or best_split(target, chips, request.total_replicas, seed, progress)
    count = request.replicas or chips // split.chips
    return service(target, split, count, request.router, request.settings(target), request.disaggregate)


def best_split(target: ServingTarget, chips: int, replicas: int | None, seed: int, progress: Progress | None) -> Split:
    """The split with the largest load over the chips, or of so many replicas; an impossible SLO doesn't count."""
    within = chips // replicas if replicas else chips
    try:
        splits = _search(target, within, seed, progress)
    except Refusal as refusal:
        if type(refusal) is not Refusal:  # nothing fits or is legal: no SLO changes that
            raise
        splits = _search(without_slo(target), within, seed, progress)
    if not replicas:
        return splits.best.service.replica.split
    return max(splits.capacities, key=lambda c: c.worth / c.service.replicas).service.replica.split


def _search(target: ServingTarget, chips: int, seed: int, progress: Progress | None) -> CapacitySearch:
    return search(target, chips, seed, tune=False, progress=progress)


def without_slo(target: ServingTarget) -> ServingTarget:
    """The same requests with no SLO."""
    return replace(target, workload=replace(target.workload, serve=replace(target.workload.serve, slo=())))


def sustained(of: Service, seed: int) -> float:
    """The largest load of a service before its queue grows, whatever the SLO."""
    return capacity_of(replace(of, target=without_slo(of.target)), trial_requests(of.target, seed)).load.value


def overloaded(served: Served, seed: int) -> InputError:
    """That more arrives than a service sustains: how much it sustains, and how much within the SLO."""
    of = served.service
    rate, most = served.simulation.requests.rate, sustained(of, seed)
    most = most if most < rate else served.measures.request_rate.value  # so near that a short run can't tell
    words = f"at most the {most:.3g} requests/s that {of.target.chip.id}:{of.chips} sustains as {of}"
    if of.target.workload.serve.slo:
        within = capacity_of(of, trial_requests(of.target, seed))
        words += (
            f", {min(within.load.value, most):.3g} within the SLO"
            if within.load.value > 0
            else f", none within the SLO ({within.limit})"
        )
    return InputError("serve.arrival.rate", f"{rate:.4g}", f"{words}: {served.measures.saturated}")
