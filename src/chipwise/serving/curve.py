"""Latency against load: a service simulated at loads from light to nearly all it sustains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chipwise.serving.capacity import capacity_of, trial_requests
from chipwise.serving.service import Served, Service, run
from chipwise.serving.sizing import Progress, sustained

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the most that is sustained
COUNT = 2000  # requests of a point, at least


@dataclass(frozen=True, slots=True, eq=False)
class CurvePoint:
    """A service at one load."""

    load: float  # requests/s, or users
    served: Served

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        s = self.served
        return {"load": self.load, "ttft_seconds": s.ttft, "tpot_seconds": s.tpot, "e2e_seconds": s.e2e}


@dataclass(frozen=True, slots=True, eq=False)
class LoadCurve:
    """A service at loads from light to nearly all it sustains."""

    service: Service
    within: float  # the largest load within the SLO; 0: none
    points: tuple[CurvePoint, ...]


def load_curve(of: Service, seed: int = 0, progress: Progress | None = None) -> LoadCurve:
    """The service at shares of what it sustains: of what the queue bears, in a closed loop of what the SLO allows."""
    serve = of.target.workload.serve
    within = capacity_of(of, trial_requests(of.target, seed)).load.value
    closed = serve.arrival.kind == "closed"
    most = max(within if serve.slo else 0.0, float(serve.arrival.users)) if closed else sustained(of, seed)
    loads = [share * most for share in SHARES]
    if closed:
        loads = sorted({float(max(1, round(load))) for load in loads})
    points = []
    for i, load in enumerate(loads):
        if progress:
            progress(i, len(loads), f"{load:.3g}")
        served = (
            run(of, count=max(COUNT, 20 * round(load)), seed=seed, users=round(load))
            if closed
            else run(of, count=max(COUNT, COUNT * of.replicas // 2), seed=seed, rate=load)
        )
        points.append(CurvePoint(load, served))
    return LoadCurve(of, within if serve.slo else 0.0, tuple(points))
