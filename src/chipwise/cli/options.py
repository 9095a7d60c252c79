"""Options that several verbs share, and completion of names in the shell."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from chipwise.cli.completion import (
    complete_assumptions,
    complete_chips,
    complete_clouds,
    complete_models,
    complete_regions,
    complete_sites,
    complete_stacks,
    complete_workloads,
    complete_yaml,
    one_of,
)
from chipwise.cli.declare import Complete, argument, option, output_format
from chipwise.workload.model import (
    BASES,
    KV_PRECISIONS,
    OPTIMIZER_STATES,
    PRECISIONS,
    RECOMPUTE,
    SERVE_PRECISIONS,
    STATE_PRECISIONS,
)

WorkloadArg = Annotated[
    str,
    argument(
        "WORKLOAD", "A workload file (YAML), a known model's name, or a Hugging Face config.json.", complete_workloads
    ),
]
EvidenceOpt = Annotated[
    str,
    option(
        "--evidence",
        "KIND",
        "modelled; compiled: TPU steps by the vendor's compiler (minutes); auto: compiled where cached.",
        one_of("modelled", "compiled", "auto"),
    ),
]
PricesOpt = Annotated[
    list[str] | None,
    option("--prices", "FILE", "Your own prices (CSV) over the list; repeatable. CHIPWISE_PRICES names files too."),
]
FxOpt = Annotated[
    list[str] | None, option("--fx", "CODE=USD", "US dollars for one unit of another currency: EUR=1.08.")
]
PriceOpt = Annotated[
    list[str] | None,
    option(
        "--price", "CHIP=USD", "A chip-hour on demand, in place of its offers: v7x=12.0; repeatable.", complete_chips
    ),
]
ChipFileOpt = Annotated[
    list[str] | None,
    option(
        "--chip",
        "FILE",
        "A chip of your own: YAML or TOML with its name, the chip it is like and what differs; repeatable.",
    ),
]
CloudOpt = Annotated[str | None, option("--cloud", "LIST", "Offers of these clouds alone: gcp,aws.", complete_clouds)]
RegionOpt = Annotated[
    str | None, option("--region", "LIST", "Offers in these regions alone: us-central1,us-east-1.", complete_regions)
]
MaxAgeOpt = Annotated[str | None, option("--max-age", "TIME", "Offers no older than this: 90d.")]
FabricOpt = Annotated[
    str | None,
    option(
        "--fabric",
        "WHICH",
        "Above one instance: known, offers known to be joined by a fast fabric; any, also those not known.",
        one_of("known", "any"),
    ),
]
ComparedOpt = Annotated[
    str | None,
    option("--on", "LIST", "Chips to compare, with or without counts: h100,v5p:128. Default: all.", complete_chips),
]
ChipsOpt = Annotated[
    str | None,
    option("--chips", "N", "Number of chips of each kind; default: 64, with --deadline or --budget the best."),
]
DeadlineOpt = Annotated[
    str | None,
    option("--deadline", "TIME", "Finish within it, with the count that ranks best: 12h, 30d; of offline jobs too."),
]
BudgetOpt = Annotated[
    str | None,
    option(
        "--budget", "USD", "Cost no more, with the count that ranks best: 1000, 2.5M; per hour where a model is served."
    ),
]
ByOpt = Annotated[
    str | None,
    option(
        "--by",
        "OBJECTIVE",
        "Rank by cost, time or energy (cost; time with --budget); with --edge latency, energy or price.",
        one_of("cost", "time", "energy", "latency", "price"),
    ),
]
HeadroomOpt = Annotated[
    str | None,
    option("--headroom", "PERCENT", "Of a training run: memory that layouts leave free on each chip. Default: 5."),
]
EdgeOpt = Annotated[
    bool, typer.Option("--edge", help="Edge devices instead of data-center chips; models by their MLPerf names.")
]
PowerOpt = Annotated[str | None, option("--power", "WATTS", "With --edge: power modes of at most so many watts: 15W.")]
ScenarioOpt = Annotated[
    str | None,
    option(
        "--scenario",
        "NAME",
        "With --edge: single (a stream; default), multi (8 samples a query) or offline.",
        one_of("single", "multi", "offline"),
    ),
]
UtilizationOpt = Annotated[
    str | None, option("--utilization", "SHARE", "Share of committed or owned hours that are used: 0.4 or 40%.")
]
SiteOpt = Annotated[
    str | None, option("--site", "NAME", "Where servers would stand: its electricity, PUE and grid.", complete_sites)
]
EnergyPriceOpt = Annotated[str | None, option("--energy-price", "PRICE", "A kWh there: 0.12 (US dollars) or 0.14EUR.")]
FrameworkOpt = Annotated[
    str | None,
    option(
        "--framework",
        "NAME",
        "The program's: pytorch, jax or tensorflow; counts its migration effort.",
        one_of("pytorch", "jax", "tensorflow"),
    ),
]
SetOpt = Annotated[
    list[str] | None,
    option("--set", "NAME=VALUE", "Another value for an assumption, taken as certain.", complete_assumptions),
]
AssumptionsOpt = Annotated[
    Path | None,
    option(
        "--assumptions",
        "FILE",
        "Figures of your own (YAML) in place of assumptions: those that `observe rates --to FILE` wrote, or others.",
        complete_yaml,
    ),
]
BillFormat = Annotated[
    str, output_format("table, json, csv, or focus: rows of a FOCUS 1.1 bill.", "table", "json", "csv", "focus")
]
AllOpt = Annotated[bool, typer.Option("--all", help="Every row, not the first 10 alone; JSON and CSV have them all.")]
FullOpt = Annotated[bool, typer.Option("--full", help="Every bill with what it rests on; JSON and CSV have it all.")]
OutFile = Annotated[Path | None, option("--out", "FILE", "Write to a file, atomically.")]
LaunchOpt = Annotated[
    Path | None,
    option("--launch", "FILE", "Write what starts the pick: NAME.sh, NAME.sky.yaml, NAME.dstack.yml, NAME.job.yaml."),
]
LaunchForOpt = Annotated[
    str | None,
    option("--launch-for", "TOOL", "What --launch is written for. Default: by FILE's ending, else the stack's own."),
]
TableJsonCsv = Annotated[str, output_format("table, json or csv.", "table", "json", "csv")]
TableJson = Annotated[str, output_format("table or json.", "table", "json")]

Flags = Mapping[str, str | None]
NO_FLAGS: Flags = {}
PriceFlags = Mapping[str, Any]  # what `Knowledge.default` takes of prices
NO_PRICE_FLAGS: PriceFlags = {}
PRICE_FLAGS: Mapping[str, Any] = {
    "cloud": CloudOpt,
    "region": RegionOpt,
    "max_age": MaxAgeOpt,
    "fabric": FabricOpt,
    "price": PriceOpt,
    "prices": PricesOpt,
    "fx": FxOpt,
    "chip_file": ChipFileOpt,
}


class Flag(NamedTuple):
    """An option that describes a workload; its name is the key it stands under."""

    metavar: str
    help: str
    complete: Complete | None = None


def _choice(words: str, names: Sequence[str]) -> Flag:
    return Flag("NAME", f"{words} {', '.join(names)}.", one_of(*names))


MODEL = Flag("NAME", "Another model: a known name or a config.json.", complete_models)
STACK = Flag("NAME", "Software stack, such as megatron or vllm.", complete_stacks)
WORKLOAD_FLAGS = {
    "model": MODEL,
    "batch": Flag("N", "Global batch: sequences or images per step."),
    "batch_tokens": Flag("N", "The same in tokens per step, such as 4M."),
    "sequence": Flag("N", "Tokens per sequence, such as 4096 or 8k (8,192)."),
    "precision": _choice("One of", PRECISIONS),
    "tokens": Flag("N", "Tokens of the run, such as 15T."),
    "steps": Flag("N", "Steps of the run."),
    "samples": Flag("N", "Images of the run (or sequences), such as 115M."),
    "optimizer": _choice("One of", tuple(OPTIMIZER_STATES)),
    "state_precision": _choice("Of master weights and optimizer moments: one of", STATE_PRECISIONS),
    "recompute": _choice("One of", RECOMPUTE),
    "lora": Flag("RANK", "Train adapters of that rank; the base weights are frozen."),
    "lora_base": _choice(
        "What the frozen layers are held in beside --lora: the run's precision, or (QLoRA) one of", BASES
    ),
    "stack": STACK,
}
SERVING_FLAGS = {
    "model": MODEL,
    "input_len": Flag("N", "Tokens of a prompt: a number, p50:900,p99:8000 or mean:1000,cv:0.5."),
    "output_len": Flag("N", "Tokens of an answer, written alike."),
    "rate": Flag("N", "Requests per second, Poisson arrivals; scales a trace."),
    "users": Flag("N", "Users who each send a request when the last one is answered."),
    "trace": Flag("FILE", "CSV of requests: arrival_s,input,output."),
    "offline": Flag("N", "An offline job instead: tokens of prompts and answers (500M), or 300k requests."),
    "precision": _choice("Of the weights: one of", SERVE_PRECISIONS),
    "kv_precision": _choice("Of cached keys and values:", KV_PRECISIONS),
    "prefix_hit": Flag("SHARE", "Share of input tokens found in the prefix cache, 0 to 1."),
    "draft": Flag("NAME", "Speculative decoding: what drafts, ngram, mtp (or EAGLE) or a smaller model's name."),
    "draft_tokens": Flag("N", "Tokens drafted for every pass of the model, such as 3."),
    "acceptance": Flag("SHARE", "Share of drafted tokens that your requests keep: 0.7 or 70%."),
    "ttft": Flag("TIME", "SLO: time to the first token, p99 unless written p90:500ms."),
    "tpot": Flag("TIME", "SLO: time per later token, such as 50ms or p90:40ms,p99:60ms."),
    "itl": Flag("TIME", "SLO: every gap between two tokens."),
    "e2e": Flag("TIME", "SLO: time to the whole answer."),
    "denoise_steps": Flag("N", "Passes per image of a diffusion model; guidance takes two a step."),
    "stack": STACK,
}
ANY_FLAGS = {
    **WORKLOAD_FLAGS,
    **SERVING_FLAGS,
    "precision": Flag(
        "NAME",
        "Such as bf16 or fp8; int8w and int4 where a model is served.",
        one_of(*dict.fromkeys(PRECISIONS + SERVE_PRECISIONS)),
    ),
}


def with_workload_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the options of `WORKLOAD_FLAGS` where it has the parameter `flags`, which gets their values."""
    return _with(WORKLOAD_FLAGS, verb)


def with_serving_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the options of `SERVING_FLAGS` where it has the parameter `flags`, which gets their values."""
    return _with(SERVING_FLAGS, verb)


def with_any_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the options of both kinds of workload where it has the parameter `flags`."""
    return _with(ANY_FLAGS, verb)


def with_price_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the options of `PRICE_FLAGS` where it has the parameter `offers`, which gets their values."""
    return _expanded(PRICE_FLAGS, "offers", verb)


def _with(table: Mapping[str, Flag], verb: Callable[..., None]) -> Callable[..., None]:
    annotations = {
        name: Annotated[str | None, option(f"--{name.replace('_', '-')}", *flag)] for name, flag in table.items()
    }
    return _expanded(annotations, "flags", verb)


def _expanded(annotations: Mapping[str, Any], into: str, verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with options where it has one parameter, which gets their values by name."""
    own = inspect.signature(verb, eval_str=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(name, keyword, default=None, annotation=annotation)
        for name, annotation in annotations.items()
    ]
    every: list[inspect.Parameter] = []
    for parameter in own.parameters.values():
        every += options if parameter.name == into else [parameter.replace(kind=keyword)]

    @wraps(verb)
    def called(**values: Any) -> None:
        given = {name: values.pop(name) for name in annotations}
        verb(**values, **{into: given})

    called.__signature__ = own.replace(parameters=every)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return called
