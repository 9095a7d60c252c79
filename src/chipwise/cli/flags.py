"""Errors in the words of the command line: a verb's parameter `time_limit` is its flag ``--time-limit``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import wraps
from typing import Any

from chipwise.errors import NOTHING, InputError

SPELLING = 0.75  # share of letters alike from which a flag is a slip of the pen: --samles is 0.92, --images 0.6
MOST = 3  # flags in a hint


def name_flags(command: Any) -> Any:
    """The command of click whose errors name its own flags and arguments; so do those of its verbs."""
    for verb in getattr(command, "commands", {}).values():
        name_flags(verb)
    callback = command.callback
    if callback is None:
        return command

    @wraps(callback)
    def called(**given: Any) -> Any:
        try:
            return callback(**given)
        except InputError as error:
            raise in_flags(error, command, given) from None

    command.callback = called
    return command


def in_flags(error: InputError, command: Any, given: Mapping[str, Any]) -> InputError:
    """The error with flags where it names parameters that were given, or that should have been.

    A name that no flag was given for is the key of a file: `model` of a workload file, not ``--model``.
    """
    spoken = {parameter.name: _spoken(parameter) for parameter in command.params}

    def name(field: str) -> str:
        parameter, space, rest = field.partition(" ")  # "layout tp": an axis of the layout
        known = parameter in spoken and (given.get(parameter) is not None or error.value is NOTHING)
        return f"{spoken[parameter]}{space}{rest}" if known else field

    return error.renamed(name)


def _spoken(parameter: Any) -> str:
    """The longest flag of an option, the name that help shows of an argument."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name).strip("[].")


# What other tools and clouds call what a flag is for: torchrun, vLLM and SGLang, Hugging Face's Trainer, Megatron-LM,
# SkyPilot, the clouds' own command lines (2026-11-19).
MEANINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "gpu gpus tpu tpus chip accelerator accelerators device devices hardware num-gpus nproc-per-node",
        ("on", "chips"),
    ),
    ("nodes nnodes num-nodes world-size instances", ("on", "chips")),
    ("seq seq-len seq-length max-seq-length max-length context context-length block-size", ("sequence", "input-len")),
    ("batch-size bs global-batch global-batch-size gbs", ("batch", "batch-tokens")),
    ("dtype quantization quant bits load-in-4bit torch-dtype", ("precision", "lora-base")),
    ("qlora lora-rank lora-r rank adapter peft", ("lora", "lora-base")),
    ("epochs iterations iters train-iters max-steps", ("steps", "tokens", "samples")),
    ("qps rps request-rate requests-per-second throughput load", ("rate", "users")),
    ("concurrency max-concurrency clients sessions num-users parallel", ("users", "rate")),
    ("prompt prompt-len isl context-tokens", ("input-len",)),
    ("max-tokens max-new-tokens osl completion completion-len generate", ("output-len",)),
    ("latency sla slo p99 response-time", ("e2e", "ttft", "tpot")),
    ("time hours duration within until max-time", ("deadline", "time-limit", "until")),
    ("money spend max-cost max-price usd", ("budget", "price")),
    ("provider vendor seller csp platform", ("cloud",)),
    ("country location geo zone place datacenter", ("site", "region")),
    ("spot preemptible on-demand reserved", ("pricing",)),
    ("tensor-parallel tensor-parallel-size tp-size", ("tp", "layout")),
    ("pipeline-parallel pipeline-parallel-size pp-size", ("pp", "layout")),
    ("expert-parallel expert-parallel-size ep-size", ("ep", "layout")),
    ("tp pp dp ep fsdp zero parallelism strategy", ("layout",)),
    ("framework engine backend runtime library", ("stack",)),
    ("json csv format fmt", ("output",)),
    ("file save outfile write-to", ("out",)),
    ("electricity power-price kwh", ("energy-price",)),
    ("prefill disagg pd-disaggregation", ("disaggregate",)),
    ("activation-checkpointing gradient-checkpointing remat", ("recompute",)),
)


# Flags of other tools for which another command is (kubectl, terraform and sbatch have such, 2026-11-19).
COMMANDS: Mapping[str, str] = {
    "chipwise jobs submit": "`chipwise jobs render FILE --pools POOLS` shows what a backend would be asked for and "
    "writes nothing, `chipwise jobs explain ID` tells why a submitted job goes where",
    "chipwise router run": "`chipwise simulate` shows what a policy does to a trace, `chipwise jobs explain ID` tells "
    "why a job goes where",
}
REHEARSALS = ("dry-run", "explain", "plan", "test-only", "what-if")


def command_instead(path: str, name: str) -> str:
    """What another command does that an unknown flag of this one is for; empty where none does.

    >>> "jobs explain" in command_instead("chipwise jobs submit", "--dry-run"), command_instead("chipwise cost", "--x")
    (True, '')
    """
    return COMMANDS.get(path, "") if name.lstrip("-").lower().replace("_", "-") in REHEARSALS else ""


def options_that_mean(name: str, command: Any) -> tuple[str, ...]:
    """Flags of a command that an unknown one may stand for: what other tools call so, its spelling, the help's words.

    ``--images`` is no ``--max-age``, however alike the letters: ``--samples`` are "Images of the run"; ``--qps`` is
    what other tools call ``--rate``.
    """
    flag_name = name.lstrip("-").lower().replace("_", "-")
    word, meant = _stem(flag_name), [flag for words, flags in MEANINGS if flag_name in words.split() for flag in flags]
    ranked: list[tuple[float, float, str]] = []
    for parameter in command.params:
        if parameter.param_type_name != "option" or getattr(parameter, "hidden", False):
            continue
        flag = _spoken(parameter)
        own = flag.lstrip("-")
        part = word in map(_stem, own.split("-"))  # --tokens is a part of --batch-tokens
        alike = SPELLING if part else SequenceMatcher(None, word, _stem(own)).ratio()
        words = [_stem(each) for each in re.findall(r"[a-z]+", (parameter.help or "").lower())]
        if own in meant:
            ranked.append((-1.0, float(meant.index(own)), flag))
        elif alike >= SPELLING and not meant:
            ranked.append((0.0, -alike, flag))
        elif word in words:
            ranked.append((1.0, float(words.index(word)), flag))
    return tuple(flag for *_, flag in sorted(ranked)[:MOST])


def _stem(word: str) -> str:
    return word.removesuffix("s")
