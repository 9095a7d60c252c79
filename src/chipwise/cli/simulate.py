"""chipwise simulate: policies tried on a trace, before they are trusted with jobs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.options import OutFile, TableJsonCsv, complete_chips
from chipwise.route.names import DEFAULT_POLICY

if TYPE_CHECKING:
    from chipwise.present.progress import Progress
    from chipwise.route.simulate.run import Simulation

EXAMPLES = """\b
Examples:
  chipwise simulate examples/traces/mixed-day.yaml --pools examples/traces/mixed-pools.yaml --policy fastest,cheapest
  chipwise simulate examples/traces/mixed-day.yaml --pools examples/traces/mixed-pools.yaml --seed 1 --failures 0.001
  chipwise simulate examples/traces/philly-days-20-21.csv --pools examples/traces/gpu-pools.yaml --plot days.svg
  chipwise simulate --gavel-trace examples/traces/gavel-seed0 --policy max-min-fair -o json
"""
NOT_GAVEL = ("pools", "speed")  # options that a Gavel trace has in its own files


def complete_traces(incomplete: str) -> list[str]:
    """YAML and CSV files that begin with what was typed."""
    folder = Path(incomplete).parent if "/" in incomplete else Path()
    try:
        files = [str(p) for p in folder.iterdir() if p.is_dir() or p.suffix in (".yaml", ".yml", ".csv")]
    except OSError:
        return []
    return [name for name in files if name.startswith(incomplete)]


def complete_policies(incomplete: str) -> list[str]:
    """Policies that begin with what was typed; after a comma, the next of a list."""
    from chipwise.route.policies import policy_names

    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in policy_names() if name.startswith(last.lower())]


def simulate(
    context: typer.Context,
    trace: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TRACE]",
            help="Jobs with their arrivals (YAML or CSV), or recorded jobs (CSV with gpus, duration_s).",
            autocompletion=complete_traces,
            show_default=False,
        ),
    ] = None,
    pools: Annotated[
        Path | None,
        typer.Option(
            "--pools",
            metavar="FILE",
            help="A pools file (YAML). CHIPWISE_POOLS names one too.",
            envvar="CHIPWISE_POOLS",
            autocompletion=complete_traces,
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="LIST",
            help="Policies to try, such as fastest,cheapest; all: every one.",
            autocompletion=complete_policies,
        ),
    ] = DEFAULT_POLICY,
    gavel_trace: Annotated[
        Path | None,
        typer.Option(
            "--gavel-trace",
            metavar="FOLDER",
            help="Instead of TRACE and --pools: a folder with jobs.csv, throughput.csv and cluster.csv.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="Draw run times from their intervals, and spot interruptions. Without it all happens as estimated.",
            show_default=False,
        ),
    ] = None,
    failures: Annotated[
        float, typer.Option("--failures", metavar="RATE", help="Nodes that fail: of one node, an hour.")
    ] = 0.0,
    repair: Annotated[str, typer.Option("--repair", metavar="TIME", help="Until a failed node is back.")] = "4h",
    speed: Annotated[
        list[str] | None,
        typer.Option(
            "--speed",
            metavar="CHIP=FACTOR",
            help="Of recorded jobs: speed on a chip against the recorded GPUs. May be said again.",
            autocompletion=complete_chips,
            show_default=False,
        ),
    ] = None,
    tick: Annotated[
        str, typer.Option("--tick", metavar="TIME", help="Ask the policy at least so often while a job waits.")
    ] = "5min",
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="NAME=VALUE",
            help="Of the balanced policy: cost, time, energy or risk. May be said again.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw who held which chips when and the use of the pools, as .svg or .png.",
            show_default=False,
        ),
    ] = None,
    jobs_out: Annotated[
        Path | None,
        typer.Option("--jobs-out", metavar="FILE", help="Write what became of every job, as CSV.", show_default=False),
    ] = None,
    output: TableJsonCsv = "table",
    out: OutFile = None,
) -> None:
    """Try policies on a trace before they are trusted with jobs.

    Discrete-event simulation with the router's own job table, policies and allocation. Estimates are the predictor's;
    what happens may differ, drawn from a seed: run times, spot interruptions, failed nodes. Every assumption is
    printed.
    """
    from chipwise.cli import simulate_blocks, simulate_records
    from chipwise.cli.pricing import read_pools
    from chipwise.present.output import emit, emit_csv, emit_json, formats
    from chipwise.present.progress import progress
    from chipwise.route.policies import check_weights, policy_list
    from chipwise.route.simulate import plots
    from chipwise.route.simulate.random_events import RandomEvents
    from chipwise.route.simulate.run import SimulationOptions, load_gavel_trace, load_trace
    from chipwise.route.simulate.run import simulate as try_policies

    formats(output, "table", "json", "csv")
    names = policy_list(policy)
    _check_sources(context, trace, pools, gavel_trace)
    options = SimulationOptions(
        RandomEvents(seed, failures, _time(repair, "--repair")),
        _time(tick, "--tick", 1.0),
        _pairs(weight, "--weight", "cost=2"),
    )
    check_weights(names, options.weights)
    if plot is not None:
        plots.ready(plot, len(names))
    with progress("simulate") as line:
        watcher = _Watcher(line)
        if gavel_trace is not None:
            jobs = load_gavel_trace(gavel_trace)
        else:
            assert trace is not None and pools is not None
            jobs = load_trace(trace, read_pools(pools), _pairs(speed, "--speed", "h100=2.5"), watcher.say)
        simulation = try_policies(jobs, names, options, watcher)
    if plot is not None:
        _draw(simulation, plot)
    if jobs_out is not None:
        emit_csv(simulate_records.job_rows(simulation.outcomes), jobs_out, "--jobs-out")
    if output == "json":
        emit_json(simulate_records.record(simulation), out)
    elif output == "csv":
        emit_csv(simulate_records.rows(simulation), out)
    else:
        emit(simulate_blocks.blocks(simulation), out)


def _check_sources(context: typer.Context, trace: Path | None, pools: Path | None, gavel_trace: Path | None) -> None:
    """A trace with pools, or a Gavel trace, which has its own; and no option that the other alone reads."""
    from chipwise.errors import InputError

    if gavel_trace is None:
        if trace is None:
            raise InputError("TRACE", "nothing", "a trace file, or --gavel-trace FOLDER")
        if pools is None:
            raise InputError("--pools", "nothing", "a pools file (YAML)")
        return
    if trace is not None:
        raise InputError("--gavel-trace", str(gavel_trace), "either TRACE or --gavel-trace, not both")
    for name in NOT_GAVEL:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            value = context.params[name]
            raise InputError(
                f"--{name}",
                ", ".join(value) if isinstance(value, list) else str(value),
                "no such option with --gavel-trace: cluster.csv and throughput.csv say it",
            )


def _time(text: str, field: str, least: float = 0.0) -> float:
    from chipwise.errors import InputError
    from chipwise.units import DAY, parse_duration

    seconds = parse_duration(text, field)
    if not least <= seconds <= 365 * DAY:
        raise InputError(field, text, f"a time from {least:g} s to a year, such as 5min or 1920s")
    return seconds


def _pairs(given: Sequence[str] | None, field: str, example: str) -> dict[str, float]:
    from chipwise.errors import InputError

    out: dict[str, float] = {}
    for text in given or ():
        name, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not name or not 0 <= number < float("inf"):
            raise InputError(field, text, f"a name and a number of at least 0, such as {example}")
        out[name.strip()] = number
    return out


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


def _draw(simulation: Simulation, plot: Path) -> None:
    from chipwise.route.simulate import plots

    fates = simulation.outcomes[0].fates
    labels = [f.owner if simulation.kind == "recorded" else f.id.partition("#")[0] for f in fates]
    plots.draw(simulation.outcomes, f"{simulation.name}: {simulation.jobs:,} jobs", labels, plot)
