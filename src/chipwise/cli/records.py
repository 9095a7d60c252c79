"""Answers as plain dictionaries: what `-o json` prints. Documented in docs/json.md; SI units throughout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.catalog import Accelerators, Chip, Offer
    from chipwise.predict.estimate import Estimate
    from chipwise.prices import PriceBook, Quote
    from chipwise.workload import Workload
    from chipwise.workload.presets import Preset

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
        "usd_per_chip_hour": q.price.usd_per_chip_hour,
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
        "ondemand_usd_per_chip_hour": o.ondemand_usd_per_chip_hour,
        "spot_usd_per_chip_hour": o.spot_usd_per_chip_hour,
        "date": o.date,
        "stale": is_stale(o.date, date.today()),
        "own": o.own,
        "source": o.source,
        "note": o.note,
    }
