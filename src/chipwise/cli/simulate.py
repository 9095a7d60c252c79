"""chipwise simulate: policies tried on a trace, before they are trusted with jobs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.completion import complete_chips, complete_policy_list, files
from chipwise.cli.declare import argument, option
from chipwise.cli.options import OutFile, TableJsonCsv
from chipwise.route.names import DEFAULT_POLICY
from chipwise.verbs import defaults

if TYPE_CHECKING:
    from chipwise.present.progress import Progress

EXAMPLES = """\b
Examples:
  chipwise simulate examples/traces/mixed-day.yaml --pools examples/traces/mixed-pools.yaml --policy fastest,cheapest
  chipwise simulate examples/traces/mixed-day.yaml --pools examples/traces/mixed-pools.yaml --seed 1 --failures 0.001
  chipwise simulate examples/traces/philly-days-20-21.csv --pools examples/traces/gpu-pools.yaml --plot days.svg
  chipwise simulate --gavel-trace examples/traces/gavel-seed0 --policy max-min-fair -o json
"""
complete_traces = files(".yaml", ".yml", ".csv")


def simulate(
    context: typer.Context,
    trace: Annotated[
        Path | None,
        argument(
            "[TRACE]",
            "Jobs with their arrivals (YAML or CSV), or recorded jobs (CSV with gpus, duration_s).",
            complete_traces,
        ),
    ] = None,
    pools: Annotated[
        Path | None,
        option(
            "--pools",
            "FILE",
            "A pools file (YAML). CHIPWISE_POOLS names one too.",
            complete_traces,
            envvar="CHIPWISE_POOLS",
        ),
    ] = None,
    policy: Annotated[
        str,
        option("--policy", "LIST", "Policies to try, such as fastest,cheapest; all: every one.", complete_policy_list),
    ] = DEFAULT_POLICY,
    gavel_trace: Annotated[
        Path | None,
        option(
            "--gavel-trace",
            "FOLDER",
            "Instead of TRACE and --pools: a folder with jobs.csv, throughput.csv and cluster.csv.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        option(
            "--seed",
            "N",
            "Draw run times from their intervals, and spot interruptions. Without it all happens as estimated.",
        ),
    ] = None,
    failures: Annotated[float, option("--failures", "RATE", "Nodes that fail: of one node, an hour.")] = 0.0,
    repair: Annotated[str, option("--repair", "TIME", "Until a failed node is back.")] = defaults.REPAIR,
    speed: Annotated[
        list[str] | None,
        option(
            "--speed",
            "CHIP=FACTOR",
            "Of recorded jobs: speed on a chip against the recorded GPUs. Repeatable.",
            complete_chips,
        ),
    ] = None,
    tick: Annotated[
        str, option("--tick", "TIME", "Ask the policy at least so often while a job waits.")
    ] = defaults.TICK,
    weights: Annotated[
        list[str] | None,
        option(
            "--weight",
            "NAME=VALUE",
            "Of balanced: cost, time, energy, risk; of cheapest-within-deadline: delay. Repeatable.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        option("--plot", "FILE", "Draw who held which chips when and the use of the pools, as .svg or .png."),
    ] = None,
    jobs_out: Annotated[Path | None, option("--jobs-out", "FILE", "Write what became of every job, as CSV.")] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Try policies on a trace before they are trusted with jobs.

    Discrete-event simulation with the router's own job table, policies and allocation. Estimates are the predictor's;
    what happens may differ, drawn from a seed: run times, spot interruptions, failed nodes. Every assumption is
    printed.
    """
    from chipwise import api
    from chipwise.errors import NOTHING, Conflict, InputError
    from chipwise.knowledge import Knowledge
    from chipwise.present.output import emit_csv, show
    from chipwise.present.progress import progress

    if trace is not None and gavel_trace is not None:
        raise Conflict("TRACE", "--gavel-trace")
    source = gavel_trace or trace
    if source is None:
        raise InputError("TRACE", NOTHING, "a trace file, or --gavel-trace FOLDER")
    origin = context.get_parameter_source("pools")
    if gavel_trace is not None and origin is not None and origin.name == "ENVIRONMENT":
        pools = None  # those of CHIPWISE_POOLS are for other traces
    try:
        with progress("simulate") as line:
            simulation = api.simulate(
                source,
                pools,
                policy=policy,
                random=seed is not None,
                failures=failures,
                repair=repair,
                speed=speed,
                tick=tick,
                weights=weights,
                plot=plot,
                knowledge=None if seed is None else Knowledge.default(seed=seed),
                progress=_Watcher(line),
            )
    except InputError as error:  # the library takes both kinds of trace in one place
        raise error.under("gavel_trace") if gavel_trace is not None and error.field == "trace" else error from None
    if jobs_out is not None:
        emit_csv(simulation.job_rows(), jobs_out, "--jobs-out")
    show(simulation, output, out)


@dataclass(frozen=True, slots=True)
class _Watcher:
    line: Progress

    def compiling(self, policy: str) -> AbstractContextManager[object]:
        from chipwise.present.progress import waiting

        return waiting(f"simulate: {policy}; the first time on this machine, it is compiled")

    def progress(self, policy: str, done: int, jobs: int) -> None:
        self.line(done, jobs, policy)

    def say(self, what: str) -> None:
        self.line.say(f"simulate: {what}")
