"""Options that several verbs share, and completion of names in the shell."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from chipwise.cli.completion import (
    complete_assumptions,
    complete_chips,
    complete_models,
    complete_sites,
    complete_stacks,
    complete_workloads,
    one_of,
)
from chipwise.workload.model import KV_PRECISIONS, OPTIMIZER_STATES, PRECISIONS, RECOMPUTE, SERVE_PRECISIONS

WorkloadArg = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="A workload file (YAML), a known model's name, or a Hugging Face config.json.",
        autocompletion=complete_workloads,
        show_default=False,
    ),
]
ModelOpt = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Another model: a known name or a config.json.",
        autocompletion=complete_models,
        show_default=False,
    ),
]
BatchOpt = Annotated[
    str | None,
    typer.Option("--batch", metavar="N", help="Global batch: sequences or images per step.", show_default=False),
]
SequenceOpt = Annotated[
    str | None, typer.Option("--sequence", metavar="N", help="Tokens per sequence.", show_default=False)
]
PrecisionOpt = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="NAME",
        help=f"One of {', '.join(PRECISIONS)}.",
        autocompletion=one_of(*PRECISIONS),
        show_default=False,
    ),
]
TokensOpt = Annotated[
    str | None, typer.Option("--tokens", metavar="N", help="Tokens of the run, such as 15T.", show_default=False)
]
StepsOpt = Annotated[str | None, typer.Option("--steps", metavar="N", help="Steps of the run.", show_default=False)]
SamplesOpt = Annotated[
    str | None,
    typer.Option("--samples", metavar="N", help="Images of the run (or sequences), such as 115M.", show_default=False),
]
OptimizerOpt = Annotated[
    str | None,
    typer.Option(
        "--optimizer",
        metavar="NAME",
        help=f"One of {', '.join(OPTIMIZER_STATES)}.",
        autocompletion=one_of(*OPTIMIZER_STATES),
        show_default=False,
    ),
]
RecomputeOpt = Annotated[
    str | None,
    typer.Option(
        "--recompute",
        metavar="NAME",
        help=f"One of {', '.join(RECOMPUTE)}.",
        autocompletion=one_of(*RECOMPUTE),
        show_default=False,
    ),
]
LoraOpt = Annotated[
    str | None,
    typer.Option(
        "--lora", metavar="RANK", help="Train adapters of that rank; the base weights are frozen.", show_default=False
    ),
]
EVIDENCE = ("modelled", "compiled", "auto")
EvidenceOpt = Annotated[
    str,
    typer.Option(
        "--evidence",
        metavar="KIND",
        autocompletion=one_of(*EVIDENCE),
        help="modelled; compiled: TPU steps by the vendor's compiler (minutes); auto: compiled where cached.",
    ),
]
StackOpt = Annotated[
    str | None,
    typer.Option(
        "--stack",
        metavar="NAME",
        help="Software stack, such as megatron or vllm.",
        autocompletion=complete_stacks,
        show_default=False,
    ),
]
LENGTHS_HELP = "a number, p50:900,p99:8000 or mean:1000,cv:0.5"
InputLenOpt = Annotated[
    str | None,
    typer.Option("--input-len", metavar="N", help=f"Tokens of a prompt: {LENGTHS_HELP}.", show_default=False),
]
OutputLenOpt = Annotated[
    str | None,
    typer.Option("--output-len", metavar="N", help="Tokens of an answer, written alike.", show_default=False),
]
RateOpt = Annotated[
    str | None,
    typer.Option(
        "--rate", metavar="N", help="Requests per second, Poisson arrivals; scales a trace.", show_default=False
    ),
]
UsersOpt = Annotated[
    str | None,
    typer.Option(
        "--users", metavar="N", help="Users who each send a request when the last one is answered.", show_default=False
    ),
]
TraceOpt = Annotated[
    str | None,
    typer.Option("--trace", metavar="FILE", help="CSV of requests: arrival_s,input,output.", show_default=False),
]
ServePrecisionOpt = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="NAME",
        help=f"Of the weights: one of {', '.join(SERVE_PRECISIONS)}.",
        autocompletion=one_of(*SERVE_PRECISIONS),
        show_default=False,
    ),
]
AnyPrecisionOpt = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="NAME",
        help="Such as bf16 or fp8; int8w and int4 where a model is served.",
        autocompletion=one_of(*dict.fromkeys(PRECISIONS + SERVE_PRECISIONS)),
        show_default=False,
    ),
]
KvPrecisionOpt = Annotated[
    str | None,
    typer.Option(
        "--kv-precision",
        metavar="NAME",
        help=f"Of cached keys and values: {', '.join(KV_PRECISIONS)}.",
        autocompletion=one_of(*KV_PRECISIONS),
        show_default=False,
    ),
]
PrefixHitOpt = Annotated[
    str | None,
    typer.Option(
        "--prefix-hit",
        metavar="SHARE",
        help="Share of input tokens found in the prefix cache, 0 to 1.",
        show_default=False,
    ),
]
TtftOpt = Annotated[
    str | None,
    typer.Option(
        "--ttft",
        metavar="TIME",
        help="SLO: time to the first token, p99 unless written p90:500ms.",
        show_default=False,
    ),
]
TpotOpt = Annotated[
    str | None,
    typer.Option(
        "--tpot",
        metavar="TIME",
        help="SLO: time per later token, such as 50ms or p90:40ms,p99:60ms.",
        show_default=False,
    ),
]
ItlOpt = Annotated[
    str | None,
    typer.Option("--itl", metavar="TIME", help="SLO: every gap between two tokens.", show_default=False),
]
E2eOpt = Annotated[
    str | None,
    typer.Option("--e2e", metavar="TIME", help="SLO: time to the whole answer.", show_default=False),
]
DenoiseStepsOpt = Annotated[
    str | None,
    typer.Option("--denoise-steps", metavar="N", help="Passes per image of a diffusion model.", show_default=False),
]
PricesOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="Your own prices (CSV) over the list; repeatable. CHIPWISE_PRICES names files too.",
        show_default=False,
    ),
]
FxOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--fx",
        metavar="CODE=USD",
        help="US dollars for one unit of a currency in your prices: EUR=1.08.",
        show_default=False,
    ),
]
BILL_FORMATS = ("table", "json", "csv", "focus")
ComparedOpt = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="LIST",
        help="Chips to compare, with or without counts: h100,v5p:128. Default: all.",
        autocompletion=complete_chips,
        show_default=False,
    ),
]
ChipsOpt = Annotated[
    str | None, typer.Option("--chips", metavar="N", help="So many chips of each (default: 64).", show_default=False)
]
DeadlineOpt = Annotated[
    str | None,
    typer.Option(
        "--deadline",
        metavar="TIME",
        help="The fewest chips that finish within it: 12h, 30d; of offline jobs too.",
        show_default=False,
    ),
]
BudgetOpt = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="USD",
        help="The fastest count within it: 1000, 2.5M; per hour where a model is served.",
        show_default=False,
    ),
]
ByOpt = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="OBJECTIVE",
        help="Rank by cost, time or energy (cost; time with --budget).",
        autocompletion=one_of("cost", "time", "energy"),
        show_default=False,
    ),
]
UtilizationOpt = Annotated[
    float | None,
    typer.Option(
        "--utilization",
        metavar="SHARE",
        help="Share of committed or owned hours that are used, 0 to 1.",
        show_default=False,
    ),
]
SiteOpt = Annotated[
    str | None,
    typer.Option(
        "--site",
        metavar="NAME",
        help="Where servers would stand: its electricity, PUE and grid.",
        autocompletion=complete_sites,
        show_default=False,
    ),
]
FrameworkOpt = Annotated[
    str | None,
    typer.Option(
        "--framework",
        metavar="NAME",
        help="The program's: pytorch, jax or tensorflow; counts its migration effort.",
        autocompletion=one_of("pytorch", "jax", "tensorflow"),
        show_default=False,
    ),
]
SetOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another value for an assumption, taken as certain.",
        autocompletion=complete_assumptions,
        show_default=False,
    ),
]
BillFormat = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="FORMAT",
        help="table, json, csv, or focus: rows of a FOCUS 1.1 bill.",
        autocompletion=one_of(*BILL_FORMATS),
    ),
]
OutFile = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write to a file, atomically.", show_default=False),
]
TableJsonCsv = Annotated[
    str,
    typer.Option(
        "-o", "--output", metavar="FORMAT", help="table, json or csv.", autocompletion=one_of("table", "json", "csv")
    ),
]
TableJson = Annotated[
    str, typer.Option("-o", "--output", metavar="FORMAT", help="table or json.", autocompletion=one_of("table", "json"))
]

Flags = Mapping[str, str | None]
NO_FLAGS: Flags = {}
WORKLOAD_FLAGS: dict[str, Any] = {
    "model": ModelOpt,
    "batch": BatchOpt,
    "sequence": SequenceOpt,
    "precision": PrecisionOpt,
    "tokens": TokensOpt,
    "steps": StepsOpt,
    "samples": SamplesOpt,
    "optimizer": OptimizerOpt,
    "recompute": RecomputeOpt,
    "lora": LoraOpt,
    "stack": StackOpt,
}
SERVING_FLAGS: dict[str, Any] = {
    "model": ModelOpt,
    "input_len": InputLenOpt,
    "output_len": OutputLenOpt,
    "rate": RateOpt,
    "users": UsersOpt,
    "trace": TraceOpt,
    "precision": ServePrecisionOpt,
    "kv_precision": KvPrecisionOpt,
    "prefix_hit": PrefixHitOpt,
    "ttft": TtftOpt,
    "tpot": TpotOpt,
    "itl": ItlOpt,
    "e2e": E2eOpt,
    "denoise_steps": DenoiseStepsOpt,
    "stack": StackOpt,
}
ANY_FLAGS: dict[str, Any] = {**WORKLOAD_FLAGS, **SERVING_FLAGS, "precision": AnyPrecisionOpt}


def with_workload_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the options of `WORKLOAD_FLAGS` where it has the parameter `flags`, which gets their values."""
    return _with(WORKLOAD_FLAGS, verb)


def with_serving_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the options of `SERVING_FLAGS` where it has the parameter `flags`, which gets their values."""
    return _with(SERVING_FLAGS, verb)


def with_any_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the options of both kinds of workload where it has the parameter `flags`."""
    return _with(ANY_FLAGS, verb)


def _with(table: Mapping[str, Any], verb: Callable[..., None]) -> Callable[..., None]:
    own = inspect.signature(verb, eval_str=True)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in table.items()
    ]
    every: list[inspect.Parameter] = []
    for each in own.parameters.values():
        every += options if each.name == "flags" else [each.replace(kind=inspect.Parameter.KEYWORD_ONLY)]

    @wraps(verb)
    def called(**values: Any) -> None:
        flags = {name: values.pop(name) for name in table}
        verb(**values, flags=flags)

    called.__signature__ = own.replace(parameters=every)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in every}
    return called
