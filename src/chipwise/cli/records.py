"""Answers as plain dictionaries: what `-o json` prints. Documented in docs/json.md; SI units throughout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.catalog import Accelerators, Chip, Offer
    from chipwise.compare import Comparison, Refused, TrainingRow
    from chipwise.compare.serving.comparer import Rent, ServingRow
    from chipwise.compare.serving_comparison import ServingComparison
    from chipwise.layout import Found, SearchResult
    from chipwise.predict.estimate import Estimate
    from chipwise.predict.prediction import Prediction
    from chipwise.prices import PriceBook, Quote
    from chipwise.workload import Workload
    from chipwise.workload.presets import Preset
    from chipwise.workload.serve import ServingWorkload

SCHEMA = 1


def head(command: str) -> dict[str, Any]:
    """How every document begins."""
    from chipwise import __version__

    return {"schema": SCHEMA, "chipwise": __version__, "command": command}


def estimate(e: Estimate) -> dict[str, Any]:
    """A number with its interval and evidence."""
    return {"value": e.value, "low": e.low, "high": e.high, "evidence": e.evidence, "because": e.because}


def workload(w: Workload) -> dict[str, Any]:
    """What is run."""
    t = w.train
    return {
        "name": w.name,
        "model": w.model.name,
        "family": w.model.family,
        "global_batch": t.global_batch,
        "sequence": t.sequence,
        "steps": t.steps,
        "tokens": t.tokens,
        "precision": t.precision,
        "optimizer": t.optimizer,
        "recompute": t.recompute,
        "lora_rank": t.lora_rank,
        "unit": _unit(w),
    }


def _unit(w: Workload) -> str:
    return "images" if w.train.samples_unit == "images" else "tokens"


def accelerators(acc: Accelerators) -> dict[str, Any]:
    """Chips and how many."""
    return {"name": str(acc), "chip": acc.chip.id, "count": acc.count, "shape": list(acc.shape), "slices": acc.slices}


def quote(q: Quote | None) -> dict[str, Any] | None:
    """A cost and the offer behind it."""
    if q is None:
        return None
    o = q.price.offer
    return {
        "usd": estimate(q.usd),
        "usd_per_chip_hour": q.price.usd_h,
        "spot": q.price.spot,
        "cloud": o.cloud,
        "region": o.region,
        "instance": o.instance,
        "date": o.date,
        "stale": q.price.stale,
        "own": o.own,
        "source": o.source,
        "note": q.price.note,
    }


def prediction(p: Prediction) -> dict[str, Any]:
    """Everything predicted about one layout."""
    return {
        "accelerators": accelerators(p.accelerators),
        "layout": str(p.layout),
        "stack": p.stack.id,
        "step_seconds": estimate(p.step),
        "lower_bound_seconds": p.bound_s,
        "math_seconds": p.math_s,
        "parts_seconds": dict(p.parts),
        "hidden_seconds": p.hidden_s,
        "learnt_factor": p.learnt,
        "units_per_second": estimate(p.tokens_per_s),
        "units_per_second_per_chip": estimate(p.tokens_per_s.scaled(1 / p.accelerators.count)),
        "mfu": p.mfu,
        "duration_seconds": estimate(p.duration),
        "kwh": estimate(p.kwh),
        "watts_per_chip": p.watts,
        "memory_bytes": dict(p.memory),
        "capacity_bytes": p.capacity,
        "assumptions": list(p.assumptions),
    }


def row(r: TrainingRow, rank: int) -> dict[str, Any]:
    """One row of a comparison."""
    return {
        "rank": rank,
        **prediction(r.prediction),
        "layouts_evaluated": r.search.evaluated,
        "ondemand": quote(r.ondemand),
        "spot": quote(r.spot),
    }


def refused(r: Refused) -> dict[str, Any]:
    """A chip that can't run the workload, and why."""
    return {
        "chip": r.chip.id,
        "accelerators": str(r.accelerators) if r.accelerators else None,
        "kind": r.kind,
        "reason": r.reason,
        "unlock": r.unlock,
    }


def comparison(c: Comparison) -> dict[str, Any]:
    """A whole comparison."""
    from chipwise.workload import metrics_that_matter

    return {
        **head("compare"),
        "workload": workload(c.workload),
        "objective": c.terms.objective,
        "terms": {
            "chips": c.terms.chips,
            "deadline_seconds": c.terms.deadline_s,
            "budget_usd": c.terms.budget_usd,
            "words": c.terms.in_words(),
        },
        "pick": str(c.pick.accelerators) if c.pick else None,
        "words": {"pick": c.words.pick, "why": c.words.why, "flip": c.words.flip},
        "flips": [
            {
                "kind": f.kind,
                "winner": f.winner,
                "subject": f.subject,
                "before": f.before,
                "after": f.after,
                "words": f.words,
            }
            for f in c.flips
        ],
        "rows": [row(r, i + 1) for i, r in enumerate(c.rows)],
        "refused": [refused(r) for r in c.refused],
        "decides": metrics_that_matter(c.workload),
        "assumptions": list(c.assumptions),
    }


def comparison_rows(c: Comparison) -> list[dict[str, Any]]:
    """A comparison as flat rows, for CSV."""
    out = []
    for i, r in enumerate(c.rows):
        p = r.prediction
        out.append(
            {
                "rank": i + 1,
                "accelerators": str(r.accelerators),
                "chip": r.accelerators.chip.id,
                "chips": r.accelerators.count,
                "layout": str(p.layout),
                "stack": p.stack.id,
                "step_s": p.step.value,
                "step_s_low": p.step.low,
                "step_s_high": p.step.high,
                f"{_unit(c.workload)}_per_s_per_chip": r.tokens_per_s_per_chip.value,
                "mfu": p.mfu,
                "duration_s": p.duration.value,
                "kwh": p.kwh.value,
                "ondemand_usd": r.ondemand.usd.value if r.ondemand else "",
                "ondemand_usd_h": r.ondemand.price.usd_h if r.ondemand else "",
                "spot_usd": r.spot.usd.value if r.spot else "",
                "spot_usd_h": r.spot.price.usd_h if r.spot else "",
                "stale": _stale(r.ondemand, r.spot),
                "evidence": p.step.evidence,
                "pick": r is c.pick,
                "refused": "",
            }
        )
    blank = dict.fromkeys(out[0], "") if out else {}
    for no in c.refused:
        why = f"{no.reason}; {no.unlock}" if no.unlock else no.reason
        out.append(
            {
                **blank,
                "accelerators": str(no.accelerators or no.chip.id),
                "chip": no.chip.id,
                "pick": False,
                "refused": why,
            }
        )
    return out


def _stale(ondemand: Quote | Rent | None, spot: Quote | Rent | None) -> str:
    """Which of two prices are stale, in one cell."""
    named = {"ondemand": ondemand, "spot": spot}
    return " ".join(name for name, each in named.items() if each is not None and each.price.stale)


def served_workload(w: ServingWorkload) -> dict[str, Any]:
    """What is served."""
    s = w.serve
    return {
        "name": w.name,
        "model": w.model.name,
        "family": w.model.family,
        "arrival": s.arrival.kind,
        "input_tokens": s.input.mean,
        "output_tokens": s.output.mean,
        "precision": s.precision,
        "kv_precision": s.kv_precision,
        "prefix_hit": s.prefix_hit,
        "requests": s.requests or None,
        "deadline_seconds": s.deadline_s or None,
        "passes": s.passes,
        "slo": [{"metric": b.metric, "percentile": b.percentile, "seconds": b.seconds} for b in s.slo],
        "unit": "tokens" if w.model.family == "decoder" else s.unit,
    }


def _ends(e: Estimate | None) -> dict[str, Any] | None:
    """An estimate whose high end may be missing: no count would hold."""
    from math import inf

    return None if e is None else {**estimate(e), "high": None if e.high == inf else e.high}


def rent(row: ServingRow, r: Rent | None) -> dict[str, Any] | None:
    """What a fleet costs and the offer behind it."""
    if r is None:
        return None
    o = r.price.offer
    return {
        "usd_per_hour": _ends(r.usd_h),
        "usd_per_million_units": _ends(row.per_million(r)),
        "usd_per_chip_hour": r.price.usd_h,
        "spot": r.price.spot,
        "cloud": o.cloud,
        "region": o.region,
        "instance": o.instance,
        "date": o.date,
        "stale": r.price.stale,
        "own": o.own,
        "source": o.source,
        "note": o.note,
    }


def serving_row(r: ServingRow, rank: int) -> dict[str, Any]:
    """One row of a comparison of services."""
    from chipwise.compare.serving.comparer import slo_latencies

    s, m = r.served, r.served.measures
    return {
        "rank": rank,
        "accelerators": accelerators(r.accelerators),
        "split": str(r.split),
        "chips_per_replica": r.split.chips,
        "replicas": r.fleet.replicas,
        "stack": s.service.target.stack.id,
        "latencies_seconds": {name: estimate(e) for name, e in slo_latencies(r)},
        "alone_seconds": estimate(r.alone),
        "units_per_second": estimate(r.unit_rate),
        "requests_per_second": estimate(r.request_rate),
        "capacity": estimate(r.load),
        "headroom": None if r.headroom is None else estimate(r.headroom),
        "limit": r.limit,
        "duration_seconds": estimate(r.seconds) if r.demand.kind == "job" else None,
        "joules_per_unit": estimate(r.joules),
        "busy": m.busy,
        "batch": m.batch,
        "kv_use": m.kv_use,
        "ondemand": rent(r, r.ondemand),
        "spot": rent(r, r.spot),
    }


def serving_comparison(c: ServingComparison) -> dict[str, Any]:
    """A whole comparison of services."""
    from chipwise.workload.serve_criteria import what_decides_serving

    loose = c.relaxed
    return {
        **head("compare"),
        "workload": served_workload(c.workload),
        "objective": c.terms.objective,
        "terms": {"chips": c.terms.chips, "deadline_seconds": c.terms.deadline_s, "budget_usd": c.terms.budget_usd},
        "demand": {"kind": c.market.demand.kind, "load": c.market.demand.load or None},
        "seed": c.market.seed,
        "pick": str(c.pick.accelerators) if c.pick else None,
        "words": {"pick": c.words.pick, "why": c.words.why, "flip": c.words.flip},
        "flips": [
            {
                "kind": f.kind,
                "winner": f.winner,
                "subject": f.subject,
                "before": f.before,
                "after": f.after,
                "words": f.words,
            }
            for f in c.flips
        ],
        "relaxed": None
        if loose is None
        else {
            "metric": loose.bound.metric,
            "percentile": loose.bound.percentile,
            "before": loose.bound.seconds,
            "after": loose.looser.seconds,
            "winner": str(loose.winner.accelerators),
            "same": str(loose.same.accelerators) if loose.same else None,
        },
        "rows": [serving_row(r, i + 1) for i, r in enumerate(c.rows)],
        "refused": [refused(r) for r in c.refused],
        "decides": what_decides_serving(c.workload),
        "assumptions": list(c.assumptions),
    }


def serving_rows(c: ServingComparison) -> list[dict[str, Any]]:
    """A comparison of services as flat rows, for CSV."""
    from chipwise.compare.serving.comparer import slo_latencies

    out: list[dict[str, Any]] = []
    for i, r in enumerate(c.rows):
        latencies = {f"{name.replace(' ', '_')}_s": e.value for name, e in slo_latencies(r)}
        million = [r.per_million(rented) for rented in (r.ondemand, r.spot)]
        out.append(
            {
                "rank": i + 1,
                "accelerators": str(r.accelerators),
                "chip": r.accelerators.chip.id,
                "chips": r.accelerators.count,
                "split": str(r.split),
                "replicas": r.fleet.replicas,
                "stack": r.served.service.target.stack.id,
                **latencies,
                "alone_s": r.alone.value,
                "units_per_s": r.unit_rate.value,
                "headroom": r.headroom.value if r.headroom else "",
                "headroom_low": r.headroom.low if r.headroom else "",
                "joules_per_unit": r.joules.value,
                "ondemand_usd_h": r.ondemand.usd_h.value if r.ondemand else "",
                "ondemand_usd_million": million[0].value if million[0] else "",
                "spot_usd_h": r.spot.usd_h.value if r.spot else "",
                "spot_usd_million": million[1].value if million[1] else "",
                "stale": _stale(r.ondemand, r.spot),
                "evidence": r.evidence,
                "pick": r is c.pick,
                "refused": "",
            }
        )
    blank = dict.fromkeys(out[0], "") if out else {}
    for no in c.refused:
        why = f"{no.reason}; {no.unlock}" if no.unlock else no.reason
        out.append(
            {
                **blank,
                "accelerators": str(no.accelerators or no.chip.id),
                "chip": no.chip.id,
                "pick": False,
                "refused": why,
            }
        )
    return out


def found(f: Found, result: SearchResult) -> dict[str, Any]:
    """One layout of a search."""
    return {
        "layout": str(f.layout),
        "step_seconds": f.seconds,
        "memory_bytes": f.bytes,
        "headroom_bytes": result.headroom(f),
    }


def layouts(w: Workload, acc: Accelerators, result: SearchResult) -> dict[str, Any]:
    """What a search over layouts found."""
    return {
        **head("layouts"),
        "workload": workload(w),
        "accelerators": accelerators(acc),
        "best": found(result.best, result),
        "top": [found(f, result) for f in result.top],
        "front": [found(f, result) for f in result.front],
        "limit_bytes": result.limit,
        "evaluated": result.evaluated,
        "too_large": result.too_large,
        "least_bytes": result.least_bytes,
        "splits": result.splits,
        "refused_splits": dict(result.refused),
    }


def model(e: Preset) -> dict[str, Any]:
    """One model known by name."""
    from chipwise.workload.params import count

    m, params = e.model, count(e.model)
    return {
        "name": m.name,
        "family": m.family,
        "parameters": params.total,
        "active_parameters": params.active,
        "published_parameters": m.published_params,
        "context": m.context or None,
        "aliases": list(e.aliases),
        "source": m.source,
        "date": m.source_date,
    }


def chip(c: Chip, book: PriceBook) -> dict[str, Any]:
    """One chip: every figure with its source, and every offer."""
    from chipwise.catalog import load

    slices = load().slices.get(c.id)
    return {
        "id": c.id,
        "name": c.name,
        "vendor": c.vendor,
        "family": c.family,
        "architecture": c.architecture,
        "launched": c.launched,
        "aliases": list(c.aliases),
        "frameworks": list(c.frameworks),
        "programming": list(c.programming),
        "limits": list(c.limits),
        "fabric": {"kind": c.fabric.kind, "name": c.fabric.name},
        "figures": {
            name: {"value": f.value, "unit": f.unit, "source": f.source, "date": f.date, "note": f.note}
            for name, f in c.figures.items()
        },
        "slices": None
        if slices is None
        else {
            "shapes": ["x".join(map(str, s)) for s in slices.shapes],
            "cube": slices.cube,
            "max_chips": slices.max_chips,
            "source": slices.source,
            "date": slices.date,
            "note": slices.note,
        },
        "offers": [offer(o) for o in book.offers_for(c.id)],
    }


def offer(o: Offer) -> dict[str, Any]:
    """One line of a price list."""
    from datetime import date

    from chipwise.prices import is_stale

    return {
        "cloud": o.cloud,
        "region": o.region,
        "instance": o.instance,
        "chips": o.chips,
        "ondemand_usd_per_chip_hour": o.ondemand_usd_h,
        "spot_usd_per_chip_hour": o.spot_usd_h,
        "date": o.date,
        "stale": is_stale(o.date, date.today()),
        "own": o.own,
        "source": o.source,
        "note": o.note,
    }
