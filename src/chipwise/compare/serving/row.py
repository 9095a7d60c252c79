"""One chip of a comparison of services: the replicas that sustain the demand, what users see of them, their cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from chipwise.catalog import Accelerators
from chipwise.compare.serving.fleet import Fleet
from chipwise.predict.estimate import Estimate
from chipwise.prices import Quote
from chipwise.serving.formats import in_short
from chipwise.serving.requests import draw
from chipwise.serving.service import Served
from chipwise.serving.split import Split
from chipwise.units import HOUR
from chipwise.workload.serve import ServingWorkload

# Assumed (2026-11-16): without an SLO nothing bounds the queue, which grows as 1 / (1 - use) in every queueing model.
OPEN_USE = 0.8


@dataclass(frozen=True, slots=True)
class Demand:
    """What must be sustained: requests/s, users of a closed loop, or the requests/s that finish a job in time."""

    kind: str  # "rate", "users" or "job"
    load: float  # 0: a job without a deadline
    most_use: float = 1.0  # share of what replicas sustain that they may be given

    def replicas(self, each: float) -> int:
        """Replicas of that load that sustain it, used at most so far.

        >>> Demand("rate", 20.0).replicas(5.0), Demand("rate", 20.0).replicas(4.9), Demand("job", 0.0).replicas(4.9)
        (4, 5, 1)
        """
        return max(1, ceil(self.load / (each * self.most_use) - 1e-9))

    def __str__(self) -> str:
        if self.kind == "users":
            return f"{self.load:,.0f} users"
        if not self.load:
            return "no deadline"
        return f"{self.load:,.0f} requests/s" if self.load >= 100 else f"{self.load:.3g} requests/s"


def demand_of(workload: ServingWorkload, seed: int = 0) -> Demand:
    """What a workload asks for."""
    s = workload.serve
    if s.arrival.kind == "closed":
        return Demand("users", float(s.arrival.users))
    if s.arrival.kind == "offline":
        return Demand("job", s.requests / s.deadline_s if s.deadline_s and s.requests else 0.0)
    rate = s.arrival.rate if s.arrival.rate > 0 else draw(s, 0, seed).rate
    return Demand("rate", rate, 1.0 if s.slo else OPEN_USE)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ServingRow:
    """A chip that sustains the demand within the SLO."""

    fleet: Fleet
    split: Split
    demand: Demand
    load: Estimate  # the largest that all replicas sustain, in the demand's unit
    limit: str  # what ends it
    served: Served  # one replica (all, where some prefill apart) at its share of the demand; of a job at its pace
    unloaded: Estimate  # time per token (or of the whole answer) of a request that meets no other, s
    ondemand: Quote | None  # an hour
    spot: Quote | None
    queueing_margin: float | None = None  # that random arrivals cost; None: they are not random

    def __repr__(self) -> str:
        return f"<ServingRow {self.accelerators} as {self.replicas_in_short} x {self.split}: {self.load.value:.3g}>"

    @property
    def accelerators(self) -> Accelerators:
        """All chips."""
        return self.fleet.accelerators

    @property
    def evidence(self) -> str:
        """Of the times."""
        return self.load.evidence

    @property
    def certain(self) -> bool:
        """Whether there are published serving figures of the chip itself: without, its intervals are a guess."""
        return self.load.distance is not None and self.load.distance.own

    @property
    def precision(self) -> str:
        """Of the weights as the chip serves them: what stands in for one that it lacks."""
        replica = self.served.service.replica
        return in_short(replica.chip, replica.model, replica.precision)

    @property
    def prefill_replicas(self) -> int:
        """Replicas for prompts alone; 0: all do both."""
        return self.served.service.prefill_replicas

    @property
    def replicas(self) -> int:
        """Those that answer: all, or where some do prompts alone the others."""
        return self.fleet.replicas - self.prefill_replicas

    @property
    def replicas_in_short(self) -> str:
        """How many: 8, or 2+6 where two do prompts alone."""
        return f"{self.prefill_replicas}+{self.replicas:,}" if self.prefill_replicas else f"{self.replicas:,}"

    @property
    def request_rate(self) -> Estimate:
        """Requests answered a second."""
        return self.served.request_rate.scaled(self._runs)

    @property
    def _runs(self) -> int:
        """How many of what was simulated there are: one replica, or all that prefill and decode together."""
        return 1 if self.prefill_replicas else self.fleet.replicas

    @property
    def unit_rate(self) -> Estimate:
        """Output tokens a second; requests of a model that answers in one pass."""
        return self.served.token_rate.scaled(self._runs) if self.writes else self.request_rate

    @property
    def writes(self) -> bool:
        """Whether the model answers token by token."""
        return self.served.service.target.workload.model.writes

    @property
    def headroom(self) -> Estimate | None:
        """The largest load over the demand, less 1; None without a demand."""
        if not self.demand.load:
            return None
        low, value, high = (x / self.demand.load - 1 for x in (self.load.low, self.load.value, self.load.high))
        return replace(self.load, value=value, low=low, high=high)

    @property
    def joules(self) -> Estimate:
        """Energy of an output token or of a request."""
        return self.served.joules

    @property
    def seconds(self) -> Estimate:
        """To answer a request, the median; to finish an offline job."""
        if self.demand.kind == "job":
            return self.request_rate.inverted(self.served.service.target.workload.serve.requests or 1e6)
        return self.served.e2e.p50

    def per_million(self, quote: Quote | None) -> Estimate | None:
        """US dollars for a million output tokens, or requests of a model that answers in one pass."""
        if quote is None:
            return None
        if self.demand.kind == "job":
            return self.unit_rate.inverted(quote.usd.value * 1e6 / HOUR)
        return quote.usd.scaled(1e6 / HOUR / self.unit_rate.value)

    def job_usd(self, quote: Quote | None) -> Estimate | None:
        """US dollars for all requests of an offline job; None where it has no number of them."""
        if quote is None or self.demand.kind != "job" or not self.served.service.target.workload.serve.requests:
            return None
        return self.seconds.scaled(quote.usd.value / HOUR)

    def per_million_processed(self, quote: Quote | None) -> Estimate | None:
        """US dollars of an offline job over a million of its tokens, those of prompts as much as those of answers."""
        out = self.per_million(quote)
        if out is None or self.demand.kind != "job" or not self.writes:
            return None
        return out.scaled(1 / self.processed_per_written)

    @property
    def processed_per_written(self) -> float:
        """Tokens of prompts and answers for each token of an answer, as the simulated requests have them."""
        drawn = self.served.simulation.requests
        tokens_in, tokens_out = float(drawn.input.sum()), float(drawn.output.sum())
        return (tokens_in + tokens_out) / tokens_out

    def by(self, objective: str) -> Estimate | None:
        """What the row is ranked by; None where it has no price."""
        if objective == "cost":
            if self.demand.kind == "job":
                return self.per_million(self.ondemand)
            return self.ondemand.usd if self.ondemand else None
        return self.seconds if objective == "time" else self.joules

    @property
    def unpriced_rank(self) -> float:
        """Rows without a price are ordered by how many chips they take."""
        return float(self.accelerators.count)

    @property
    def unit(self) -> str:
        """What is answered: tokens, or requests of a model that answers in one pass."""
        return "tokens" if self.writes else self.served.service.target.workload.serve.unit

    def priced(self, usd_per_chip_hour: float) -> ServingRow:
        """The row at another on-demand price."""
        return replace(self, ondemand=self.ondemand.at(usd_per_chip_hour)) if self.ondemand else self


def slo_latencies(row: ServingRow) -> list[tuple[str, Estimate]]:
    """What users see at the percentiles of the SLO; at the 99th of the usual measures without one."""
    served = row.served
    spreads = {"ttft": served.ttft, "tpot": served.tpot, "itl": served.itl, "e2e": served.e2e}
    out: list[tuple[str, Estimate]] = []
    for kept in served.measures.slo_checks:
        bound, spread = kept.bound, spreads[kept.bound.metric]
        name = f"{bound.metric} p{bound.percentile:g}"
        if spread is None:
            continue
        known = getattr(spread, f"p{bound.percentile:g}", None)
        by = served.service.corrections["ttft" if bound.metric == "ttft" else "tpot"]
        out.append((name, known or by.around(kept.seconds, kept.seconds, kept.seconds)))
    if out:
        return out
    if served.tpot is None:
        return [("e2e p99", served.e2e.p99)]
    return [("ttft p99", served.ttft.p99), ("tpot p99", served.tpot.p99)]
