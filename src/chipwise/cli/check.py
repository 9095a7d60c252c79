"""chipwise check: what the vendors' compilers make of a program, with no accelerator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import complete_chips, complete_workloads, one_of
from chipwise.cli.declare import argument, option
from chipwise.cli.options import NO_FLAGS, Flags, OutFile, TableJson, with_workload_flags
from chipwise.verbs import defaults

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
        argument(
            "PROGRAM",
            "package.module:function, file.py:function, a jax.export or StableHLO file, or a workload.",
            complete_workloads,
        ),
    ],
    on: Annotated[
        str, option("--on", "LIST", "Chips and how many, separated by commas: v5e:4x4,v6e:8,h100:8.", complete_chips)
    ],
    options: Annotated[
        list[str] | None, option("--option", "KEY=VALUE", "An option for the compiler; repeatable.")
    ] = None,
    axes: Annotated[
        str | None, option("--axes", "AXES", "The mesh, in place of the program's own: data=4,model=2.")
    ] = None,
    choices: Annotated[
        list[str] | None, option("--choose", "KEY=VALUE", "A keyword for the program's function; repeatable.")
    ] = None,
    sizes: Annotated[
        list[str] | None,
        option("--size", "NAME=N", "The size of a dimension an exported file leaves open; repeatable."),
    ] = None,
    torch: Annotated[
        bool | None,
        typer.Option(
            "--torch/--jax",
            help="The function makes a PyTorch module, or a JAX step; default: as its imports tell.",
            show_default=False,
        ),
    ] = None,
    layout: Annotated[
        str | None, option("--layout", "AXES", "How a workload is split: fsdp=8,tp=2; default: the best.")
    ] = None,
    mode: Annotated[
        str, option("--mode", "NAME", "Of a workload: train, prefill or decode.", one_of("train", "prefill", "decode"))
    ] = defaults.MODE,
    breakdown: Annotated[int, option("--breakdown", "N", "Lines in each breakdown.", min=1, max=1000)] = 8,
    tune: Annotated[bool, typer.Option("--tune", help="Search options and choices that make it faster.")] = False,
    tune_limit: Annotated[int, option("--tune-limit", "N", "Compiles of a search, per target.", min=1, max=1000)] = 24,
    limit_seconds: Annotated[
        str | None, option("--limit-seconds", "TIME", "Stop a compile after it: 600, 20min; default: 30min.")
    ] = None,
    limit_memory: Annotated[
        str | None,
        option("--limit-memory", "GIB", "Stop a compile that takes more of this machine; default: 80 % of it."),
    ] = None,
    dump: Annotated[Path | None, option("--dump", "DIR", "Write each target's optimized module there.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Compile again, and keep nothing.")] = False,
    flags: Flags = NO_FLAGS,
    output: TableJson = "table",
    out: OutFile = None,
) -> None:
    """Compile a program for chips you don't have.

    For each target: does it compile, does it fit, how long does it take, where the time and memory go, what is
    padding, which collectives were chosen. Exit status 0 only if every target compiles and fits, 1 if some don't or
    their compiler is missing here, 2 for input that can't be used, or if no target's compiler is here.
    """
    from chipwise import api
    from chipwise.present.output import emit, show
    from chipwise.present.progress import target_stages

    with target_stages("checking") as stage:
        report = api.check(
            program,
            on,
            options=options,
            axes=axes,
            choices=choices,
            sizes=sizes,
            torch=torch,
            layout=layout,
            mode=mode,
            tune=tune_limit if tune else 0,
            limit_seconds=limit_seconds,
            limit_memory=limit_memory,
            dump=dump,
            cached=not no_cache,
            progress=stage,
            changes=flags,
        )
    if output == "table":
        emit(report.blocks(breakdown), out)
    else:
        show(report, output, out)
    if not report.ok:
        raise typer.Exit(FAILED)
