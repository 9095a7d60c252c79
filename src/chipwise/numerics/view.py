"""A study as every face shows it; the columns of verdicts, recipes, layers and runs are declared once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from chipwise.numerics.compare import RULE, Compared
from chipwise.numerics.runs import Count, Run
from chipwise.numerics.statistics import Paired
from chipwise.present.blocks import Block, Table, Text, section
from chipwise.present.columns import Column, flat, padded, record, table
from chipwise.present.numbers import plural

if TYPE_CHECKING:
    from chipwise.numerics.study import Study, Verdict

WORST = 3  # layers shown of a recipe; the JSON has all
LOST = 0.01  # a smaller share of lost values is not worth a line


class Layer(NamedTuple):
    """What one recipe lost of one kind of values in one layer."""

    recipe: str
    layer: str
    values: str
    lost: Count


VERDICTS: list[Column[Verdict]] = [
    Column("precision", lambda v: v.precision, "precision", words=True, help="that was tried"),
    Column(
        "verdict",
        lambda v: v.status,
        "verdict",
        words=True,
        help="safe, safe with ..., unsafe, inconclusive, not decided",
    ),
    Column("why", lambda v: v.words, "why", words=True, help="in words"),
]
LAYERS: list[Column[Layer]] = [
    Column("", None, "recipe", lambda e: e.recipe, words=True),
    Column("layer", lambda e: e.layer, "layer", words=True, help="its name"),
    Column("values", lambda e: e.values, "values", words=True, help="activations, gradients, weights, updates"),
    Column("elements", lambda e: e.lost.elements, help="that were not 0"),
    Column(
        "underflows", lambda e: e.lost.zeroed, "round to 0", lambda e: f"{e.lost.share_zeroed:.1%}", help="became 0"
    ),
    Column("overflows", lambda e: e.lost.overflowed, "too large", lambda e: f"{e.lost.overflowed:,}", help="infinite"),
]
RUNS: list[Column[Run]] = [
    Column("seed", lambda r: r.seed, help="of the run"),
    Column("final_loss", lambda r: r.final, help="mean of the last steps"),
    Column("loss", lambda r: list(r.losses), help="by step"),
    Column("gradient_norm", lambda r: list(r.gradient_norms), help="by step"),
    Column("scale", lambda r: list(r.scales), help="of the loss, by step"),
    Column("non_finite_steps", lambda r: list(r.non_finite), help="whose loss or gradients were not finite"),
    Column("died_at_step", lambda r: r.died, help="since when nothing finite came"),
]


def _tests(t: Paired | None) -> dict[str, float] | None:
    if t is None:
        return None
    return {
        "mean": t.mean,
        "low": t.low,
        "high": t.high,
        "margin": t.margin,
        "p_not_worse": t.p_not_worse,
        "p_equivalence": t.p_equivalence,
        "p_worse": t.p_worse,
        "p_t": t.p_t,
        "p_sign_flip": t.p_sign_flip,
    }


def layers(row: Compared) -> list[Layer]:
    """Where a recipe lost values."""
    return [Layer(row.recipe.name, layer, values, count) for (layer, values), count in row.counts.items()]


def recipe_columns(scale: float) -> list[Column[Compared]]:
    """The columns of recipes; differences of losses are shown as shares of `scale`."""

    def final(show: Callable[[Compared, Paired], str]) -> Callable[[Compared], str]:
        return lambda row: "-" if row.final is None or row.curve is None else show(row, row.final)

    def mean_loss(row: Compared, _: Paired) -> str:
        return f"{math.fsum(run.final for run in row.runs) / len(row.runs):.4g}"

    return [
        Column("recipe", lambda c: c.recipe.name, "recipe", words=True, help="how it was trained"),
        Column("precision", lambda c: c.recipe.precision, help="of the recipe"),
        Column("how", lambda c: "native" if c.native else "emulated", help="native or emulated"),
        Column("scaling", lambda c: c.recipe.scaling, help="of the loss: none, static or dynamic"),
        Column("master_weights", lambda c: c.recipe.master, help="whether weights are kept in fp32"),
        Column("", None, "final loss", final(mean_loss)),
        Column("", None, "vs fp32", final(lambda _, t: f"{t.mean / scale:+.2%}")),
        Column("", None, "90 %", final(lambda _, t: f"{t.low / scale:+.1%} to {t.high / scale:+.1%}"), drop=3),
        Column("", None, "p not worse", final(lambda _, t: _p(t.p_not_worse))),
        Column("", None, "p differs", final(lambda _, t: _p(t.p_t)), drop=1),
        Column("final_difference", lambda c: _tests(c.final), help="of the final losses, over seeds"),
        Column(
            "curve_distance",
            lambda c: _tests(c.curve),
            "curve",
            final(lambda row, _: f"{row.curve.mean:.2%}" if row.curve else "-"),
            drop=2,
            help="of the loss curves, over seeds",
        ),
        Column("", None, "non-finite", lambda c: str(sum(len(run.non_finite) for run in c.runs))),
        Column("answer", lambda c: c.status, "answer", words=True, help="safe, unsafe or inconclusive"),
        Column("why", lambda c: c.why, help="in words, where it isn't safe"),
        Column("seeds_needed", lambda c: c.seeds_needed, help="about how many would tell"),
        Column("layers", lambda c: [record(LAYERS, e) for e in layers(c)], nested=True, help="where values are lost"),
        Column("runs", lambda c: [record(RUNS, run) for run in c.runs], nested=True, help="one a seed"),
    ]


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def study_record(study: Study) -> dict[str, Any]:
    """The study as JSON has it."""
    m, optimizer = study.margins, study.program.optimizer
    columns = recipe_columns(m.scale)
    return {
        "program": study.program.name,
        "framework": study.program.framework,
        "software": study.software,
        "device": study.device,
        "weights": study.weights,
        "seeds": study.seeds,
        "steps": study.steps,
        "optimizer": {"name": optimizer.name, "learning_rate": optimizer.learning_rate},
        "loss_scale": study.static,
        "verdicts": [record(VERDICTS, verdict) for verdict in study.verdicts],
        "margins": {
            "share": study.share,
            "scale": m.scale,
            "asked": m.asked,
            "final": m.final,
            "curve": m.curve,
            "between_seeds": m.between_seeds,
            "spread": m.final_spread,
        },
        "reference": {
            "recipe": "fp32",
            "final_loss": m.final_mean,
            "runs": [record(RUNS, run) for run in study.reference],
        },
        "recipes": [record(columns, row) for row in study.compared],
        "rule": list(RULE),
        "notes": list(study.notes),
    }


def flat_rows(study: Study) -> list[dict[str, Any]]:
    """One row a recipe, for CSV and pandas."""
    return padded([flat(recipe_columns(study.margins.scale), row) for row in study.compared])


def blocks(study: Study) -> list[Block]:
    """The study for people: the verdicts, what they rest on, and where values are lost."""
    m, optimizer = study.margins, study.program.optimizer
    title = (
        f"{study.program.name}: {study.software} on {study.device}, {plural(study.weights, 'weight')}, "
        f"{optimizer.name} at {optimizer.learning_rate:g}; {plural(study.seeds, 'seed')} of "
        f"{plural(study.steps, 'step')}"
    )
    margin = (
        f"margin {m.asked:.3g}: {study.share:.1%} of fp32's final loss or fall ({m.scale:.3g}); its seeds spread by "
        f"{m.final_spread:.2g}; curves: {m.curve:.1%} (two fp32 seeds differ by "
        f"{m.between_seeds:.1%})"
    )
    worst = [layer for row in study.compared for layer in _worst(row)]
    return [
        Text(title),
        Text("Verdict", True),
        table(VERDICTS, study.verdicts, bare=True),
        _recipes(study),
        *([table(LAYERS, worst, title="Where values are lost")] if worst else []),
        *section("How it was decided", [*RULE, margin]),
        *section("Notes", study.notes),
    ]


def _recipes(study: Study) -> Table:
    """The recipes beneath fp32, which they are compared with."""
    compared = table(recipe_columns(study.margins.scale), study.compared, title="Recipes")
    ends = {"recipe": "fp32", "final loss": f"{study.margins.final_mean:.4g}", "non-finite": "0", "answer": "reference"}
    reference = tuple(ends.get(header, "-") for header in compared.headers)
    return replace(compared, rows=(reference, *compared.rows))


def _worst(row: Compared) -> list[Layer]:
    """The layers that lost most, where that is worth a line."""
    worst = sorted(layers(row), key=lambda e: -max(e.lost.share_zeroed, e.lost.share_overflowed))[:WORST]
    return [e for e in worst if max(e.lost.share_zeroed, e.lost.share_overflowed) >= LOST or e.lost.overflowed]
