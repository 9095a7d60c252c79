"""chipwise check: what the vendors' compilers make of a program, with no accelerator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chipwise.cli.options import (
    NO_FLAGS,
    Flags,
    OutFile,
    TableJson,
    complete_chips,
    complete_workloads,
    one_of,
    with_workload_flags,
)

if TYPE_CHECKING:
    from chipwise.cli.asking import CheckRequest
    from chipwise.compiled.cache import Cache
    from chipwise.compiled.check.check import Question, Report, Row
    from chipwise.compiled.check.tune import Tuning
    from chipwise.compiled.worker.process import Limits

EXAMPLES = """\b
Examples:
  chipwise check examples/programs/jax_mlp.py:train --on v5e:2x2,v6e:4
  chipwise check examples/programs/torch_transformer.py:forward --on v5e:1,h100:1
  chipwise check mypackage.training:step --on v5p:4x4x4 --option xla_tpu_scoped_vmem_limit_kib=65536
  chipwise check gpt2 --batch 32 --sequence 1024 --on v5e:2x2 --layout fsdp=4 --tune
"""
FAILED = 1  # exit status: some target does not compile, or does not fit


@with_workload_flags
def check(
    program: Annotated[
        str,
        typer.Argument(
            metavar="PROGRAM",
            autocompletion=complete_workloads,
            show_default=False,
            help="package.module:function, file.py:function, a jax.export or StableHLO file, or a workload.",
        ),
    ],
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="LIST",
            help="Chips and how many, separated by commas: v5e:4x4,v6e:8,h100:8.",
            autocompletion=complete_chips,
        ),
    ],
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", help="An option for the compiler; may be repeated.", show_default=False
        ),
    ] = None,
    axes: Annotated[
        str | None,
        typer.Option(
            "--axes",
            metavar="AXES",
            help="The mesh, in place of the program's own: data=4,model=2.",
            show_default=False,
        ),
    ] = None,
    choose: Annotated[
        list[str] | None,
        typer.Option(
            "--choose",
            metavar="KEY=VALUE",
            help="A keyword for the program's function; may be repeated.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="NAME=N",
            help="The size of a dimension an exported file leaves open; may be repeated.",
            show_default=False,
        ),
    ] = None,
    torch: Annotated[
        bool | None,
        typer.Option(
            "--torch/--jax",
            help="The function makes a PyTorch module, or a JAX step; as its imports tell unless said.",
            show_default=False,
        ),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="AXES",
            help="How a workload is split: fsdp=8,tp=2. The best unless said.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="NAME",
            help="Of a workload: train, prefill or decode.",
            autocompletion=one_of("train", "prefill", "decode"),
        ),
    ] = "train",
    breakdown: Annotated[
        int, typer.Option("--breakdown", metavar="N", help="Lines in each breakdown.", min=1, max=1000)
    ] = 8,
    tune: Annotated[bool, typer.Option("--tune", help="Search options and choices that make it faster.")] = False,
    tune_limit: Annotated[
        int, typer.Option("--tune-limit", metavar="N", help="Compiles of a search, per target.", min=1, max=1000)
    ] = 24,
    limit_seconds: Annotated[
        str | None,
        typer.Option(
            "--limit-seconds",
            metavar="TIME",
            help="Stop a compile after it: 600, 20min (30min unless said).",
            show_default=False,
        ),
    ] = None,
    limit_memory: Annotated[
        str | None,
        typer.Option(
            "--limit-memory",
            metavar="GIB",
            help="Stop a compile that takes more of this machine (80 % unless said).",
            show_default=False,
        ),
    ] = None,
    dump: Annotated[
        Path | None,
        typer.Option("--dump", metavar="DIR", help="Write each target's optimised module there.", show_default=False),
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Compile anew, and keep nothing.")] = False,
    flags: Flags = NO_FLAGS,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Compile a program for chips you don't have.

    For each target: does it compile, does it fit, how long does it take, where the time and memory go, what is
    padding, which collectives were chosen. Exit status 0 only if every target compiles and fits, 1 if some don't or
    their compiler is missing here, 2 for input that can't be used, or if no target's compiler is here.
    """
    from chipwise.catalog.calibration import load_calibration
    from chipwise.cli import asking, check_records
    from chipwise.cli.check_blocks import blocks, tuning_blocks
    from chipwise.compiled.check.check import answer
    from chipwise.compiled.check.check import check as run
    from chipwise.present.output import emit, emit_json, formats

    formats(output, "table", "json")
    asked = asking.read(program, on, option or [], axes, choose or [], size or [], torch, layout, mode, flags)
    limits = _limits(limit_seconds, limit_memory)
    with _cache(no_cache) as cache, _progress(len(asked.questions)) as shown:
        found = run(asked.program, asked.kind, asked.questions, load_calibration(bench=False), limits, shown, cache)
        tunings = (
            _tuned(asked, found, lambda q: answer(q, load_calibration(bench=False), limits, shown, cache), tune_limit)
            if tune
            else ()
        )
        if dump is not None:
            _dump(found, dump, cache)
    if output == "json":
        emit_json(check_records.report(found, tunings), out)
    else:
        more = [block for each in tunings for block in tuning_blocks(each)]
        shown_blocks = blocks(found, breakdown)
        emit([*shown_blocks[:-2], *more, *shown_blocks[-2:]], out)
    if not found.ok:
        raise typer.Exit(FAILED)


def _limits(seconds: str | None, memory: str | None) -> Limits:
    from chipwise.compiled.worker.process import Limits
    from chipwise.errors import InputError
    from chipwise.units import parse_duration

    given: dict[str, Any] = {}
    if seconds is not None:
        given["seconds"] = float(seconds) if seconds.isdecimal() else parse_duration(seconds, "--limit-seconds")
        if not given["seconds"] > 0:
            raise InputError("--limit-seconds", seconds, "more than 0")
    if memory is not None:
        try:
            gib = float(memory.lower().removesuffix("gib").removesuffix("gb").removesuffix("g"))
        except ValueError:
            gib = 0.0
        if not 0 < gib < 1e6:
            raise InputError("--limit-memory", memory, "GiB of this machine's memory, such as 8")
        given["bytes"] = int(gib * 2**30)
    return Limits(**given)


@contextmanager
def _cache(none: bool) -> Iterator[Cache]:
    """The user's cache, or one that is gone afterwards."""
    import tempfile

    from chipwise.compiled.cache import Cache, default_cache

    if not none:
        yield default_cache()
        return
    with tempfile.TemporaryDirectory(prefix="chipwise-") as folder:
        yield Cache(Path(folder))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str, str, float], None]]:
    from chipwise.present.progress import progress

    seen: list[str] = []
    with progress("checking") as line:

        def shown(target: str, stage: str, seconds: float) -> None:
            if target not in seen:
                seen.append(target)
            of = f" ({seen.index(target) + 1}/{total})" if total > 1 else ""
            line.say(f"checking {target}{of}: {stage}, {seconds:.0f} s")

        yield shown


def _tuned(asked: CheckRequest, found: Report, ask: Callable[[Question], Row], limit: int) -> tuple[Tuning, ...]:
    from dataclasses import replace

    from chipwise.compiled.check.tune import choice_alternatives, option_alternatives, tune
    from chipwise.compiled.job import Compiled, Job

    out = []
    for row in found.rows:
        job = row.question.job
        if not isinstance(job, Job) or not isinstance(row.outcome, Compiled):
            continue
        alternatives = [
            *choice_alternatives(row.outcome.choices, job.spec.data.get("choices", {})),
            *asked.alternatives(row.question),
            *option_alternatives(job),
        ]
        made = tune(row.question, alternatives, ask, limit)
        out.append(replace(made, use=asked.command(row.question, made.best.changes)))
    return tuple(out)


def _dump(found: Report, folder: Path, cache: Cache) -> None:
    from chipwise.compiled.compiler import module_text
    from chipwise.compiled.job import Compiled, Job
    from chipwise.errors import InputError
    from chipwise.present.output import write

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("--dump", str(folder), f"a folder that can be written ({error.strerror})") from None
    for row in found.rows:
        job = row.question.job
        if isinstance(job, Job) and isinstance(row.outcome, Compiled):
            name = str(row.question.accelerators).replace(":", "-").replace("*", "x")
            write(module_text(job, cache), folder / f"{name}.hlo.txt")
