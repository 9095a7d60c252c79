"""One published figure against its prediction, and what many of them say together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chipwise.predict.estimate import Estimate
from chipwise.validate.by_distance import by_distance
from chipwise.validate.compiled import CompiledRow
from chipwise.validate.summary import Pair
from chipwise.validate.summary import summary as rated
from chipwise.validate.winners import Runner

FIELDS = {"by_family": "family", "by_chip": "chip", "by_source": "source"}
RATE = "tokens/s"
UNITS = {
    ("inference", "throughput"): RATE,
    ("later", "throughput"): RATE,
    ("edge", "throughput"): "samples/s",
    ("edge", "energy"): "J",
}
SERVED = FIELDS | {"by_metric": "metric", "by_mode": "mode"}


@dataclass(frozen=True, slots=True)
class Scored:
    """One published figure against its prediction: seconds, or a rate of inference."""

    id: str
    kind: str  # "training", "kernel", "inference", "later", "open" or "edge"
    source: str
    chip: str
    family: str
    observed: float | None  # None where the row could not be read
    estimate: Estimate | None
    left_out: Estimate | None  # predicted with the row's source left out of the calibration
    refusal: str
    compiled: CompiledRow | None = None  # where the row was scored by its compiled schedule
    # of inference: "throughput", "ttft", "tpot" or "e2e"; of edge rows "latency", "throughput" or "energy"; of kernels
    # the operation
    metric: str = ""
    mode: str = (
        ""  # of inference: "fixed_batch", "scheduled" or "open"; of edge rows the scenario; of kernels the regime
    )
    runner: Runner | None = None  # of training rows that were predicted: for the same model on other chips
    also: Mapping[str, Estimate] = field(default_factory=dict)  # of edge rows: with the whole device or model left out

    def as_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        e, other = self.estimate, self.left_out
        return {
            "id": self.id,
            "kind": self.kind,
            "source": self.source,
            "chip": self.chip,
            "family": self.family,
            "unit": UNITS.get((self.kind, self.metric), "s"),
            "observed": self.observed,
            "predicted": e.value if e else None,
            "low": e.low if e else None,
            "high": e.high if e else None,
            "evidence": e.evidence if e else None,
            **({"distance": str(other.distance)} if other and other.distance else {}),
            "refusal": self.refusal or None,
            "leave_one_source_out": {"predicted": other.value, "low": other.low, "high": other.high} if other else None,
            **({"compiled": self.compiled.as_dict()} if self.compiled else {}),
            **({"metric": self.metric, "mode": self.mode} if self.metric else {}),
            **{
                f"leave_{kind}_out": {"predicted": one.value, "low": one.low, "high": one.high}
                for kind, one in self.also.items()
            },
        }


def sections(scored: Sequence[Scored]) -> dict[str, Any]:
    """Summary of rows in all and by their fields, and the same with each row's source left out."""
    return {
        "summary": summary(scored),
        "refusals": dict(Counter(s.refusal for s in scored if s.refusal)),
        **_split(scored, left_out=False),
        "leave_one_source_out": {"summary": summary(scored, left_out=True), **_split(scored, left_out=True)},
        **{f"leave_{kind}_out": _without(scored, kind) for kind in _also(scored)},
        **_distances(scored),
    }


def _distances(scored: Sequence[Scored]) -> dict[str, Any]:
    """Figures of serving and kernels by distance with their source left out; nothing of rows that have none."""
    pairs = [(s.metric, Pair(s.observed, s.left_out)) for s in scored if s.observed is not None and s.left_out]
    table = by_distance(pairs)
    return {"by_distance": table} if table else {}


def _also(scored: Sequence[Scored]) -> list[str]:
    """What else was left out of the calibration, in order."""
    return list(dict.fromkeys(kind for s in scored for kind in s.also))


def _without(scored: Sequence[Scored], kind: str) -> dict[str, Any]:
    """Summary in all and by family with each row's whole device or model left out."""
    changed = [replace(s, estimate=s.also[kind]) for s in scored if kind in s.also]
    families = {name: summary(some) for name, some in _by(changed, "family").items()}
    return {"summary": summary(changed), "by_family": families}


def _split(scored: Sequence[Scored], left_out: bool) -> dict[str, Any]:
    fields = SERVED if any(s.metric for s in scored) else FIELDS
    return {
        name: {key: summary(some, left_out) for key, some in _by(scored, field).items()}
        for name, field in fields.items()
    }


def _by(scored: Iterable[Scored], field: str) -> dict[str, list[Scored]]:
    out: dict[str, list[Scored]] = defaultdict(list)
    for s in scored:
        if getattr(s, field):
            out[getattr(s, field)].append(s)
    return dict(sorted(out.items(), key=lambda item: (-len(item[1]), item[0])))


def summary(scored: Sequence[Scored], left_out: bool = False) -> dict[str, float | int | None]:
    """Counts and errors of these rows."""
    return rated(
        len(scored),
        [
            Pair(s.observed, e)
            for s in scored
            if s.observed is not None and (e := s.left_out if left_out else s.estimate) is not None
        ],
    )
