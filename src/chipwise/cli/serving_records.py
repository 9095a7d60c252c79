"""A simulated service and its largest loads as plain dictionaries: what `-o json` prints. SI units throughout."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from chipwise.cli import capacity_blocks, serving_blocks
from chipwise.cli.records import accelerators, estimate, head
from chipwise.cli.serving_words import duration_of, fitting
from chipwise.serving.capacity import Capacity, Search, front
from chipwise.serving.flags import flags

if TYPE_CHECKING:
    from chipwise.catalog import Accelerators
    from chipwise.cli.replicas import ServiceRequest
    from chipwise.cli.serving_plot import Curve
    from chipwise.serving.measures import SloCheck, Spread
    from chipwise.serving.service import Served, Service
    from chipwise.serving.split import Split
    from chipwise.serving.step_times import EngineConfig
    from chipwise.workload.serve import ServingWorkload


def workload(w: ServingWorkload) -> dict[str, Any]:
    """What is served."""
    s, a = w.serve, w.serve.arrival
    return {
        "name": w.name,
        "model": w.model.name,
        "family": w.model.family,
        "precision": s.precision,
        "kv_precision": s.kv_precision if s.unit == "tokens" else None,
        "input_tokens": s.input.mean,
        "output_tokens": s.output.mean,
        "arrival": a.kind,
        "rate": a.rate or None,
        "users": a.users or None,
        "burstiness": a.burstiness,
        "trace": s.trace.name if s.trace else None,
        "prefix_hit": s.prefix_hit,
        "slo": [str(bound) for bound in s.slo],
        "requests": s.requests or None,
        "deadline_seconds": s.deadline_s or None,
        "denoise_steps": s.passes,
        "unit": s.unit,
    }


def split(s: Split) -> dict[str, Any]:
    """How a replica is split."""
    return {"tp": s.tp, "pp": s.pp, "dp": s.dp, "ep": s.ep}


def settings(k: EngineConfig) -> dict[str, Any]:
    """What a replica's operator sets."""
    return {
        "max_batch": k.most_sequences,
        "chunk": k.most_tokens,
        "block": k.block,
        "mixed": k.mixed,
        "reserve": k.reserve,
    }


def service(of: Service) -> dict[str, Any]:
    """The replicas."""
    r = of.replica
    return {
        "split": split(r.split),
        "replicas": of.replicas,
        "prefill_replicas": of.prefill_replicas,
        "chips": of.chips,
        "router": of.router,
        "stack": of.target.stack.id,
        "settings": settings(r.config),
        "cache_blocks": of.blocks(r) if r.room.caches else None,
        "cache_sequences": fitting(of),
        "cache_bytes_per_token": r.room.per_token,
        "weights_bytes": r.room.weights,
        "flags": flags(of) or None,
    }


def spread(s: Spread | None) -> dict[str, Any] | None:
    """A latency."""
    return None if s is None else {name: estimate(getattr(s, name)) for name in ("mean", "p50", "p90", "p99")}


def kept(k: SloCheck) -> dict[str, Any]:
    """A bound of the SLO and what the run had."""
    return {
        "metric": k.bound.metric,
        "percentile": k.bound.percentile,
        "bound_seconds": k.bound.seconds,
        "seconds": k.seconds if isfinite(k.seconds) else None,
        "kept": k.holds,
    }


def served(s: Served, acc: Accelerators, asked: ServiceRequest, seed: int, curve: Curve | None) -> dict[str, Any]:
    """A simulated service."""
    m, of = s.measures, s.service
    return {
        **head("serving simulate"),
        "workload": workload(of.target.workload),
        "accelerators": accelerators(acc),
        "service": service(of),
        "split_chosen": asked.split is None,
        "seed": seed,
        "requests_simulated": len(s.simulation.requests),
        "requests_counted": m.requests,
        "ttft_seconds": spread(s.ttft),
        "tpot_seconds": spread(s.tpot),
        "itl_seconds": spread(s.itl),
        "e2e_seconds": spread(s.e2e),
        "requests_per_second": estimate(s.request_rate),
        "units_per_second": estimate(s.token_rate),
        "goodput_per_second": m.goodput,
        "good_share": m.good,
        "slo": [kept(k) for k in m.slo_checks],
        "slo_met": m.holds,
        "use": {
            "busy": m.busy,
            "busy_prefill": m.busy_prefill if of.prefill else None,
            "cache": m.kv_use,
            "cache_peak": m.kv_peak,
            "queue": m.queue,
            "in_system": m.in_system,
            "batch": m.batch,
            "preemptions": m.preemptions,
        },
        "settled": m.settled,
        "watts": m.joules_per_token * m.token_rate.value,
        "joules_per_unit": m.joules_per_token,
        "job": job(s) if s.simulation.requests.kind == "offline" else None,
        "curve": None
        if curve is None
        else [
            {
                "load": p.load,
                "ttft_seconds": spread(p.served.ttft),
                "tpot_seconds": spread(p.served.tpot),
                "e2e_seconds": spread(p.served.e2e),
            }
            for p in curve.points
        ],
        "assumptions": serving_blocks.assumptions(s, acc, seed),
    }


def job(s: Served) -> dict[str, Any]:
    """An offline job's end."""
    took, limit = duration_of(s), s.service.target.workload.serve.deadline_s
    return {
        "duration_seconds": estimate(took),
        "deadline_seconds": limit or None,
        "deadline_kept": took.value <= limit if limit else None,
    }


def capacity(found: Search, acc: Accelerators, seed: int, whole: Served | None) -> dict[str, Any]:
    """The largest loads of every split."""
    w, best = found.place.workload, found.best
    return {
        **head("serving capacity"),
        "workload": workload(w),
        "accelerators": accelerators(acc),
        "seed": seed,
        "load_unit": "users" if w.serve.arrival.kind == "closed" else "requests_per_second",
        "load": estimate(best.load),
        "best": service(best.service),
        "rows": [_row(c) for c in found.found],
        "front": [
            {
                "units_per_second_per_user": t.user_tokens_per_s,
                "units_per_second_per_chip": capacity_blocks.per_chip(c, t),
                "split": split(c.service.replica.split),
                "load": capacity_blocks.replica_load(c, t),
            }
            for c, t in front(found.found)
        ],
        "refused": [{"split": split(s), "reason": why} for s, why in found.refused],
        "needed_chips": capacity_blocks.needed_chips(found) or None,
        "job": None if whole is None else job(whole),
        "assumptions": capacity_blocks.assumptions(found, seed),
    }


def _row(c: Capacity) -> dict[str, Any]:
    of, (user, chip) = c.service, capacity_blocks.speed(c)
    return {
        "split": split(of.replica.split),
        "replicas": of.replicas,
        "load": c.load.value,
        "units_per_second_per_user": user,
        "units_per_second_per_chip": chip,
        "cache_sequences": fitting(of),
        "limit": c.limit,
        "settings": settings(of.replica.config),
    }


def capacity_rows(found: Search) -> list[dict[str, Any]]:
    """One flat row a split."""
    out = []
    for c in found.found:
        row = _row(c)
        sizes, config = row.pop("split"), row.pop("settings")
        flat = {**sizes, **row, "max_batch": config["max_batch"], "chunk": config["chunk"], "refused": None}
        out.append(flat)
    return out + [{**dict.fromkeys(out[0]), **split(s), "refused": why} for s, why in found.refused]
