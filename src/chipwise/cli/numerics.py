"""chipwise numerics: does a program train in low precision, and where does it break?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipwise.cli.options import OutFile, TableJson, one_of

if TYPE_CHECKING:
    from chipwise.numerics.compare import Compared
    from chipwise.numerics.runs import Count, Run
    from chipwise.numerics.statistics import Paired
    from chipwise.numerics.study import Study
    from chipwise.present.blocks import Block

EXAMPLES = """\b
Examples:
  chipwise numerics char-transformer
  chipwise numerics digits-cnn --framework jax --precisions bf16,fp8
  chipwise numerics examples/programs/numerics_underflow.py --precisions fp16 --plot curves.png
  chipwise numerics mine.py --seeds 8 --steps 400 -o json --out numerics.json
"""
QUICK_SEEDS, QUICK_STEPS = 3, 40
_WORST = 3  # layers shown of a recipe; the JSON has all


def numerics(
    program: Annotated[
        str,
        typer.Argument(
            metavar="PROGRAM",
            help="char-transformer, digits-cnn, or a Python file (JAX or PyTorch).",
            autocompletion=one_of("char-transformer", "digits-cnn"),
            show_default=False,
        ),
    ],
    precisions: Annotated[
        str,
        typer.Option(
            "--precisions", metavar="LIST", help="Some of fp32, bf16, fp16, fp8; fp32 is always the reference."
        ),
    ] = "fp32,bf16,fp16,fp8",
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", metavar="N", help="Seeds trained in each precision (5).", show_default=False),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", metavar="N", help="Steps of each run (the program's own, or 100).", show_default=False),
    ] = None,
    framework: Annotated[
        str | None,
        typer.Option(
            "--framework",
            metavar="NAME",
            help="torch or jax, where a program comes in both.",
            autocompletion=one_of("torch", "jax"),
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="3 seeds of 40 steps, where not given.")] = False,
    loss_scale: Annotated[
        float, typer.Option("--loss-scale", metavar="S", help="Scale of fp16 with static loss scaling.")
    ] = 1024.0,
    margin: Annotated[
        float, typer.Option("--margin", metavar="SHARE", help="How much more final loss still counts as the same.")
    ] = 0.02,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Round in software even where the hardware has the precision.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the curves to a .png or .svg.", show_default=False),
    ] = None,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Train a program in each precision and say which are safe.

    The same seeds are trained in fp32 and in each lower precision, fp16 with and without loss scaling, bf16 with and
    without fp32 master weights; final losses and curves are compared by a paired test. Without an accelerator, low
    precision is emulated by rounding.
    """
    from chipwise.numerics.plot import draw
    from chipwise.numerics.programs import load
    from chipwise.numerics.recipes import chosen
    from chipwise.numerics.study import SEEDS, study
    from chipwise.present import plots
    from chipwise.present.output import emit, emit_json, formats
    from chipwise.present.progress import progress

    formats(output, "table", "json")
    recipes = chosen(precisions)
    if plot is not None:
        plots.ready(plot)
    _foldered(out)
    seeds = seeds if seeds is not None else QUICK_SEEDS if quick else SEEDS
    steps = steps if steps is not None else QUICK_STEPS if quick else None
    with progress("training") as line:
        found = study(load(program, framework), recipes, seeds, steps, loss_scale, margin, emulate, line)
    if plot is not None:
        draw(found, plot)
    if output == "json":
        emit_json(_record(found), out)
    else:
        emit(_blocks(found), out)


def _foldered(out: Path | None) -> None:
    """Refuse a file in no folder before the training, not after."""
    from chipwise.errors import InputError

    if out is not None and not out.resolve().parent.is_dir():
        raise InputError("--out", str(out), "a file in a folder that exists")


def _blocks(found: Study) -> list[Block]:
    from chipwise.numerics.compare import RULE
    from chipwise.present.blocks import Table, Text
    from chipwise.present.numbers import plural

    m, optimizer = found.margins, found.program.optimizer
    title = (
        f"{found.program.name}: {found.software} on {found.device}, {plural(found.weights, 'weight')}, "
        f"{optimizer.name} at {optimizer.learning_rate:g}; {plural(found.seeds, 'seed')} of "
        f"{plural(found.steps, 'step')}"
    )
    verdicts = [[v.precision, v.status, v.words] for v in found.verdicts]
    blocks: list[Block] = [
        Text(title),
        Text("Verdict", True),
        Table(["precision", "verdict", "why"], verdicts, frozenset({"precision", "verdict", "why"}), bare=True),
        _table(found),
    ]
    lost = _lost(found)
    if lost:
        blocks.append(
            Table(
                ["recipe", "layer", "values", "round to 0", "too large"],
                lost,
                frozenset({"recipe", "layer", "values"}),
                title="Where values are lost",
            )
        )
    blocks += [Text("How it was decided", True), *(Text(f"  {line}") for line in RULE)]
    blocks.append(
        Text(
            f"  margin {m.final:.3g}: the larger of {found.share:.1%} of fp32's final loss or fall ({m.scale:.3g}) and "
            f"its spread over seeds ({m.final_spread:.2g}); curves: {m.curve:.1%} (two fp32 seeds differ by "
            f"{m.between_seeds:.1%})"
        )
    )
    return [*blocks, Text("Notes", True), *(Text(f"  {note}") for note in found.notes)]


def _table(found: Study) -> Block:
    from chipwise.present.blocks import Table

    m = found.margins
    rows = [["fp32", f"{m.final_mean:.4g}", "-", "-", "-", "-", "-", "0", "reference"]]
    for row in found.compared:
        bad = sum(len(run.non_finite) for run in row.runs)
        rows.append([row.recipe.name, *_numbers(row, m.scale), str(bad), row.status])
    headers = ["recipe", "final loss", "vs fp32", "90 %", "p not worse", "p differs", "curve", "non-finite", "answer"]
    return Table(headers, rows, frozenset({"recipe", "answer"}), title="Recipes", drop=("p differs", "curve", "90 %"))


def _numbers(row: Compared, scale: float) -> list[str]:
    if row.final is None or row.curve is None:
        return ["-", "-", "-", "-", "-", "-"]
    mean = math.fsum(run.final for run in row.runs) / len(row.runs)
    t = row.final
    return [
        f"{mean:.4g}",
        f"{t.mean / scale:+.2%}",
        f"{t.low / scale:+.1%} to {t.high / scale:+.1%}",
        _p(t.p_not_worse),
        _p(t.p_t),
        f"{row.curve.mean:.2%}",
    ]


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _lost(found: Study) -> list[list[str]]:
    out = []
    for row in found.compared:
        worst = sorted(row.counts.items(), key=lambda item: -max(item[1].share_zeroed, item[1].share_overflowed))
        for (layer, kind), count in worst[:_WORST]:
            if max(count.share_zeroed, count.share_overflowed) >= 0.01 or count.overflowed:
                out.append([row.recipe.name, layer, kind, f"{count.share_zeroed:.1%}", f"{count.overflowed:,}"])
    return out


def _record(found: Study) -> dict[str, Any]:
    from chipwise.cli.records import head
    from chipwise.numerics.compare import RULE

    m, optimizer = found.margins, found.program.optimizer
    return {
        **head("numerics"),
        "program": found.program.name,
        "framework": found.program.framework,
        "software": found.software,
        "device": found.device,
        "weights": found.weights,
        "seeds": found.seeds,
        "steps": found.steps,
        "optimizer": {"name": optimizer.name, "learning_rate": optimizer.learning_rate},
        "loss_scale": found.static,
        "verdicts": [{"precision": v.precision, "verdict": v.status, "why": v.words} for v in found.verdicts],
        "margins": {
            "share": found.share,
            "scale": m.scale,
            "final": m.final,
            "curve": m.curve,
            "between_seeds": m.between_seeds,
            "spread": m.final_spread,
        },
        "reference": {"recipe": "fp32", "final_loss": m.final_mean, "runs": [_run(run) for run in found.reference]},
        "recipes": [_recipe(row) for row in found.compared],
        "rule": list(RULE),
        "notes": list(found.notes),
    }


def _recipe(row: Compared) -> dict[str, Any]:
    return {
        "recipe": row.recipe.name,
        "precision": row.recipe.precision,
        "how": "native" if row.native else "emulated",
        "scaling": row.recipe.scaling,
        "master_weights": row.recipe.master,
        "answer": row.status,
        "why": row.why,
        "seeds_needed": row.seeds_needed,
        "final_difference": _test(row.final),
        "curve_distance": _test(row.curve),
        "layers": [_layer(layer, kind, count) for (layer, kind), count in row.counts.items()],
        "runs": [_run(run) for run in row.runs],
    }


def _layer(layer: str, kind: str, count: Count) -> dict[str, Any]:
    return {
        "layer": layer,
        "values": kind,
        "elements": count.elements,
        "underflows": count.zeroed,
        "overflows": count.overflowed,
    }


def _test(t: Paired | None) -> dict[str, Any] | None:
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


def _run(run: Run) -> dict[str, Any]:
    return {
        "seed": run.seed,
        "final_loss": _finite(run.final),
        "loss": [_finite(x) for x in run.losses],
        "gradient_norm": [_finite(x) for x in run.gradient_norms],
        "scale": [_finite(x) for x in run.scales],
        "non_finite_steps": list(run.non_finite),
        "died_at_step": run.died,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
