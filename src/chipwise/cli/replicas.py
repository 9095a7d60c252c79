"""The replicas that options ask for: split as named or the best one, how many, and whether the chips hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from chipwise.errors import InputError, NoLayout, Refusal
from chipwise.present.numbers import plural
from chipwise.serving.capacity import Search, capacity_of, search, trial_requests
from chipwise.serving.service import Served, Service, ServingTarget, service
from chipwise.serving.setup import engine_config
from chipwise.serving.split import Split
from chipwise.serving.step_times import EngineConfig

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """What the options say; None: not said."""

    split: Split | None = None
    replicas: int | None = None
    pools: tuple[int, int] | None = None  # replicas for prompts, replicas that decode
    router: str = "least_loaded"
    max_batch: int | None = None
    chunk: int | None = None

    @property
    def total_replicas(self) -> int | None:
        """Replicas in all, where that is said."""
        return sum(self.pools) if self.pools else self.replicas


def named_split(tp: int | None, pp: int | None, dp: int | None, ep: int | None) -> Split | None:
    """The split that options name; sizes left out are 1.

    >>> str(named_split(4, None, None, None)), named_split(None, None, None, None)
    ('tp=4', None)
    """
    if tp is pp is dp is ep is None:
        return None
    return Split(tp or 1, pp or 1, dp or 1, ep or 1)


def read_pools(text: str) -> tuple[int, int]:
    """Replicas for prompts and replicas that decode.

    >>> read_pools("2:6")
    (2, 6)
    """
    sides = text.split(":")
    if len(sides) != 2 or not all(side.strip().isdecimal() and 0 < int(side) <= 100_000 for side in sides):
        raise InputError("--disaggregate", text, "replicas for prompts and replicas that decode, such as 2:6")
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
    at: ServingTarget, chips: int, asked: ServiceRequest, seed: int = 0, progress: Progress | None = None
) -> Service:
    """The service that was asked for; a split that is not named is the one that carries most."""
    check_chips(asked.split or Split(), asked.total_replicas, chips)
    split = asked.split or best_split(at, chips, asked.total_replicas, seed, progress)
    count = asked.replicas or chips // split.chips
    return service(at, split, count, asked.router, config(at, asked), asked.pools)


def config(at: ServingTarget, asked: ServiceRequest) -> EngineConfig:
    """The stack's own settings but for those named."""
    own = engine_config(at.stack)
    return replace(
        own, most_sequences=asked.max_batch or own.most_sequences, most_tokens=asked.chunk or own.most_tokens
    )


def best_split(at: ServingTarget, chips: int, replicas: int | None, seed: int, progress: Progress | None) -> Split:
    """The split with the largest load over the chips, or of so many replicas; an impossible SLO doesn't count."""
    room = chips // replicas if replicas else chips
    try:
        found = _search(at, room, seed, progress)
    except Refusal as refusal:
        if type(refusal) is not Refusal:  # nothing fits or is legal: no SLO changes that
            raise
        found = _search(without_slo(at), room, seed, progress)
    if not replicas:
        return found.best.service.replica.split
    return max(found.found, key=lambda c: c.worth / c.service.replicas).service.replica.split


def _search(at: ServingTarget, chips: int, seed: int, progress: Progress | None) -> Search:
    return search(at, chips, seed, tune=False, progress=progress)


def without_slo(at: ServingTarget) -> ServingTarget:
    """The same requests with no SLO."""
    return replace(at, workload=replace(at.workload, serve=replace(at.workload.serve, slo=())))


def carried(of: Service, seed: int) -> float:
    """The largest load of a service before its queue grows, whatever the SLO."""
    return capacity_of(replace(of, target=without_slo(of.target)), trial_requests(of.target, seed)).load.value


def overloaded(served: Served, field: str, seed: int) -> InputError:
    """That more arrives than a service carries: how much it carries, and how much within the SLO."""
    of = served.service
    asked, most = served.simulation.requests.rate, carried(of, seed)
    most = most if most < asked else served.measures.request_rate.value  # so near that a short run can't tell
    words = f"at most the {most:.3g} requests/s that {of.target.chip.id}:{of.chips} carries as {words_of(of)}"
    if of.target.workload.serve.slo:
        kept = capacity_of(of, trial_requests(of.target, seed))
        words += (
            f", {min(kept.load.value, most):.3g} within the SLO"
            if kept.load.value > 0
            else f", none within the SLO ({kept.limit})"
        )
    return InputError(field, f"{asked:.4g}", f"{words}: {served.measures.saturated}")


def words_of(of: Service) -> str:
    """Replicas and their split: "2 replicas of tp=4"."""
    split = of.replica.split
    if of.prefill is not None:
        prompts = plural(of.prefill_replicas, "replica")
        return f"{prompts} for prompts and {of.replicas:,} for decoding, each of {split}"
    return f"{plural(of.replicas, 'replica')} of {split}"
