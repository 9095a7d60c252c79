"""The golden files: names of every command-line option, ten predictions, and figures of other verbs.

`make golden` writes them again. Figures have twelve digits and are the same on every architecture to `SAME` relative:
compilers, BLAS and vector units' exponentials differ in the last bits, and nothing that is decided may hang on those.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import typer

from chipwise.catalog import parse
from chipwise.catalog.calibration import load_calibration
from chipwise.cli.main import app, run
from chipwise.layout import search
from chipwise.predict.prediction import predict
from chipwise.workload import load_workload

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
CLI, PREDICTIONS, ANSWERS = HERE / "cli.txt", HERE / "predictions.csv", HERE / "answers.csv"
SAME = 1e-9  # relative, between architectures
PAIRS = (
    ("llama-3.1-8b-pretrain", "h100:64"),
    ("llama-3.1-8b-pretrain", "v5p:128"),
    ("llama-3.1-8b-pretrain", "b200:64"),
    ("gpt3-175b-pretrain", "a100-80gb:1024"),
    ("gpt3-175b-pretrain", "v4:1024"),
    ("mixtral-8x7b-pretrain", "h200:64"),
    ("mixtral-8x7b-pretrain", "v6e:256"),
    ("bert-large-pretrain", "a100-40gb:8"),
    ("llama-2-70b-lora", "h100:8"),
    ("resnet-50-imagenet", "v5e:16"),
)
# a command and which figures of its JSON are kept
FIGURES = (
    (
        "predict llama-3.1-8b --tokens 1B --batch 64 --sequence 4096 --on h200:8",
        r"(step_seconds|duration_seconds)\.(value|low|high)",
    ),
    (
        "compare examples/llama-3.1-8b-pretrain.yaml --on h100,b200,v5p,v6e,mi300x",
        r"rows\[\d\]\.(step_seconds\.value|ondemand\.usd\.value)",
    ),
    (
        "serving simulate examples/llama-3.1-70b-serve.yaml --on h200:8 --rate 4 --tp 4",
        r"(ttft|tpot|itl|e2e)_seconds\.(mean|p50|p99)\.\w+",
    ),
    ("serving capacity examples/llama-3.1-8b-offline.yaml --on h200:8", r"capacity\.\w+"),
    ("serving capacity examples/llama-3.1-70b-serve.yaml --on v6e:8", r"capacity\.\w+"),
    (
        "cost examples/llama-3.1-8b-pretrain.yaml --on h100:64,v6e:64",
        r"statements\[\d\]\.options\[\d\]\.(usd|usd_range\.p\d0)",
    ),
    (
        "simulate --gavel-trace examples/traces/gavel-seed0 --policy fastest,max-throughput-per-dollar",
        r".*\.(avg_jct_s|p99_jct_s|cost_usd)",
    ),
    ("validate --evidence compiled", r"rows\[\d*[05]\]\.(predicted|low|high)"),
    ("validate --rows examples/bench/h200-held-out.csv --on h200", r"rows\[\d*00\]\.(predicted|low|high)"),
)


def cli_text() -> str:
    """Every argument and option, one per line, verb by verb."""
    root = typer.main.get_command(app)
    lines = [f"chipwise {_names(param)}" for param in root.params]
    for verb, command in _commands("chipwise", root):
        lines += [f"{verb} {_names(param)}" for param in command.params]
    return "\n".join(lines) + "\n"


def _commands(name, group):
    """Every verb with its name, and those inside verbs."""
    for verb, command in group.commands.items():
        yield f"{name} {verb}", command
        if hasattr(command, "commands"):
            yield from _commands(f"{name} {verb}", command)


def _names(param) -> str:
    if param.param_type_name == "argument":
        return str(param.metavar or param.name)
    return ", ".join([*param.opts, *param.secondary_opts])


def predictions_text() -> str:
    """Best layout, step seconds and memory of each pair."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["workload", "accelerators", "layout", "step_s", "low_s", "high_s", "memory_gib"])
    for name, place in PAIRS:
        work, acc = load_workload(EXAMPLES / f"{name}.yaml"), parse(place)
        layout = search(work, acc, load_calibration(bench=False)).best.layout
        p = predict(work, acc, layout, load_calibration(bench=False))
        writer.writerow(
            [
                name,
                acc,
                layout,
                *map(digits, (p.step.value, p.step.low, p.step.high)),
                digits(p.memory["total"] / 2**30),
            ]
        )
    return out.getvalue()


def answers_text() -> str:
    """The figures of other verbs, a line each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["command", "key", "value"])
    for command, kept in FIGURES:
        with chdir(EXAMPLES.parent), redirect_stdout(io.StringIO()) as told:
            status = run([*command.split(), "-o", "json"])
        assert status == 0, command
        found = [(key, value) for key, value in leaves(json.loads(told.getvalue())) if re.fullmatch(kept, key)]
        assert found, command
        writer.writerows([command, key, digits(value)] for key, value in found)
    return out.getvalue()


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a document with its path."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from leaves(inside, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inside in enumerate(value):
            yield from leaves(inside, f"{path}[{index}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def digits(value: float) -> str:
    """Twelve of them."""
    return f"{value:.12g}"


if __name__ == "__main__":
    CLI.write_text(cli_text(), encoding="utf-8")
    PREDICTIONS.write_text(predictions_text(), encoding="utf-8")
    ANSWERS.write_text(answers_text(), encoding="utf-8")
    print(f"wrote {CLI.name}, {PREDICTIONS.name} and {ANSWERS.name}")
