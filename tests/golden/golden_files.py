"""The golden files: names of every command-line option, and ten predictions. `make golden` writes them anew."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import typer

from chipwise.catalog import parse
from chipwise.catalog.calibration import shipped
from chipwise.cli.main import app
from chipwise.layout import search
from chipwise.predict.prediction import predict
from chipwise.workload import load_workload

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
CLI, PREDICTIONS = HERE / "cli.txt", HERE / "predictions.csv"
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
        if hasattr(command, "commands"):
            yield from _commands(f"{name} {verb}", command)
        else:
            yield f"{name} {verb}", command


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
        layout = search(work, acc, shipped()).best.layout
        p = predict(work, acc, layout, shipped())
        writer.writerow([name, acc, layout, *(f"{v:.4g}" for v in (p.step.value, p.step.low, p.step.high)),
                         f"{p.memory['total'] / 2**30:.4g}"])
    return out.getvalue()


if __name__ == "__main__":
    CLI.write_text(cli_text(), encoding="utf-8")
    PREDICTIONS.write_text(predictions_text(), encoding="utf-8")
    print(f"wrote {CLI.name} and {PREDICTIONS.name}")
