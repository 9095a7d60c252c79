"""chipwise simulate: policies tried on a trace, before they are trusted with jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.options import OutFile, TableJsonCsv, complete_chips
from chipwise.cli.simulate_records import Replayed

if TYPE_CHECKING:
    from chipwise.present.progress import Progress
    from chipwise.route.simulate.arrivals import Trace
    from chipwise.route.simulate.outcome import Outcome
    from chipwise.route.simulate.random_events import RandomEvents

EXAMPLES = """\b
Examples:
  chipwise simulate examples/traces/mixed-day.yaml --pools examples/traces/mixed-pools.yaml --policy fastest,cheapest
  chipwise simulate examples/traces/mixed-day.yaml --pools examples/traces/mixed-pools.yaml --seed 1 --failures 0.001
  chipwise simulate examples/traces/philly-days-20-21.csv --pools examples/traces/gpu-pools.yaml --plot days.svg
  chipwise simulate --neutral examples/traces/gavel-seed0 --policy max-min-fair --recompute 1920s -o json
"""
DEFAULT = "cheapest-within-deadline"
MOST_SEED = 2**32
# options that work in rounds does not hear
BY_EVENTS = ("pools", "seed", "failures", "repair", "speed", "tick", "weight", "plot", "jobs_out")


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
    ] = DEFAULT,
    neutral: Annotated[
        Path | None,
        typer.Option(
            "--neutral",
            metavar="FOLDER",
            help="Instead of TRACE: a folder with jobs.csv, throughput.csv, cluster.csv, replayed in rounds.",
            show_default=False,
        ),
    ] = None,
    recompute: Annotated[
        str | None,
        typer.Option(
            "--recompute",
            metavar="TIME",
            help="With --neutral: least time between two allocations; 0 unless said.",
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

    The same board, policies and placement as the router's, on a clock of their own. Estimates are the predictor's;
    what happens may differ, drawn from a seed: run times, spot interruptions, failed nodes. Every assumption is
    printed.
    """
    from chipwise.cli import simulate_blocks, simulate_records
    from chipwise.present.output import emit, emit_csv, emit_json, formats
    from chipwise.present.progress import progress
    from chipwise.route.policies import check_weights

    formats(output, "table", "json", "csv")
    names = _names(policy)
    _check_ways(context, trace, pools, neutral, recompute)
    weights = _pairs(weight, "--weight", "cost=2")
    check_weights(names, weights)
    with progress("simulate") as line:
        if neutral is not None:
            replayed = _in_rounds(neutral, names, _time(recompute or "0s", "--recompute"), line)
        else:
            assert trace is not None and pools is not None
            if plot is not None:
                from chipwise.route.simulate import plots

                plots.ready(plot, len(names))
            chance = _chance(seed, failures, _time(repair, "--repair"))
            replayed = _by_events(
                trace,
                pools,
                names,
                chance,
                _time(tick, "--tick", 1.0),
                _pairs(speed, "--speed", "h100=2.5"),
                weights,
                line,
            )
    if plot is not None:
        _draw(replayed, plot)
    if jobs_out is not None:
        emit_csv(simulate_records.job_rows(replayed.outcomes), jobs_out, "--jobs-out")
    if output == "json":
        emit_json(simulate_records.record(replayed), out)
    elif output == "csv":
        emit_csv(simulate_records.rows(replayed), out)
    else:
        emit(simulate_blocks.blocks(replayed), out)


def _names(policy: str) -> list[str]:
    """The policies asked for, each once."""
    from chipwise.errors import InputError
    from chipwise.route.policies import POLICIES, policy_named

    names = list(dict.fromkeys(name.strip() for name in policy.split(",") if name.strip()))
    if "all" in names:
        names = list(POLICIES)
    if not names:
        raise InputError("--policy", policy, f"policies such as {DEFAULT}, or all")
    for name in names:
        policy_named(name)
    return names


def _check_ways(
    context: typer.Context, trace: Path | None, pools: Path | None, neutral: Path | None, recompute: str | None
) -> None:
    """A trace with pools, or a neutral folder; and no option that the other way alone would hear."""
    from chipwise.errors import InputError

    if neutral is None:
        if trace is None:
            raise InputError("TRACE", "nothing", "a trace file, or --neutral FOLDER")
        if pools is None:
            raise InputError("--pools", "nothing", "a pools file (YAML)")
        if recompute is not None:
            raise InputError("--recompute", recompute, "no such option without --neutral: every event is decided on")
        return
    if trace is not None:
        raise InputError("--neutral", str(neutral), "either a trace or a neutral folder, not both")
    for name in BY_EVENTS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            value = context.params[name]
            raise InputError(
                f"--{name.replace('_', '-')}",
                ", ".join(value) if isinstance(value, list) else str(value),
                "no such option with --neutral: work in rounds has nothing of the kind",
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


def _chance(seed: int | None, failures: float, repair: float) -> RandomEvents:
    from chipwise.errors import InputError
    from chipwise.route.simulate.random_events import RandomEvents

    if seed is not None and not 0 <= seed < MOST_SEED:
        raise InputError("--seed", seed, f"a whole number from 0 to {MOST_SEED - 1:,}")
    if not 0 <= failures <= 1:
        raise InputError("--failures", failures, "failures of a node an hour from 0 to 1, such as 0.0005")
    return RandomEvents(seed, failures, repair)


def _by_events(
    file: Path,
    pools_file: Path,
    names: Sequence[str],
    chance: RandomEvents,
    tick: float,
    speed: Mapping[str, float],
    weights: Mapping[str, float],
    line: Progress,
) -> Replayed:
    from chipwise.cli.pricing import read_pools
    from chipwise.present.progress import waiting
    from chipwise.route.policies import policy_named
    from chipwise.route.simulate.events import ReplayOptions, replay
    from chipwise.route.simulate.measures import measure
    from chipwise.route.simulate.policy_scheduler import PolicyScheduler
    from chipwise.route.simulate.trace import read_trace

    pools = read_pools(pools_file)
    trace = read_trace(file, pools.pools, speed, say=lambda what: line.say(f"simulate: {what}"))
    outcomes: list[Outcome] = []
    for name in names:

        def seated(name: str = name) -> PolicyScheduler:
            return PolicyScheduler(name, policy_named(name), trace.pools, weights)

        with waiting(f"simulate: {name}; the first time on this machine, it is compiled"):
            replay(replace(trace, arrivals=trace.arrivals[:3]), seated(), ReplayOptions(chance, tick))  # not counted
        outcomes.append(replay(trace, seated(), ReplayOptions(chance, tick, partial(_say, line, name))))
    span = trace.arrivals[-1].at - trace.arrivals[0].at
    refused = {o.policy: tuple((f.id, f.refused) for f in o.fates if f.end is None) for o in outcomes}
    return Replayed(
        trace.name,
        trace.kind,
        len(trace.arrivals),
        span,
        chance.seed,
        tuple(map(measure, outcomes)),
        _assumed(trace, pools.said, chance, tick, weights),
        refused,
        tuple(outcomes),
    )


def _say(line: Progress, name: str, done: int, jobs: int) -> None:
    if done % 64 == 0:
        line(done, jobs, name)


def _assumed(
    trace: Trace, said: Sequence[str], chance: RandomEvents, tick: float, weights: Mapping[str, float]
) -> tuple[str, ...]:
    from chipwise.units import format_seconds

    spot = any(p.spot for p in trace.pools)
    words = [*trace.assumptions, *(line for line in said if not line.startswith("folder:"))]  # nothing runs here
    if chance.seed is None:
        words.append(
            "runs take exactly what was estimated"
            + (", spot interruptions as expected on average" if spot else "")
            + "; --seed N draws them from their intervals"
        )
    else:
        words.append(
            "run times are drawn for each job and pool from the estimate's interval, log-normal on either "
            "side, nine in ten inside; the same draws for every policy"
        )
        if spot:
            words.append("spot chips are taken away at random at the pool's rate; others take their place at once")
    if chance.failures:
        words.append(
            f"nodes fail at random, {chance.failures:g} an hour each, and are back after "
            f"{format_seconds(chance.repair)}; the job on one goes on from its last checkpoint"
        )
    words.append("chips are paid for while a job holds them, and draw power then alone; idle chips cost nothing here")
    words.append("a job that is stopped keeps what its last checkpoint holds; restarting takes the time its file says")
    words.append(
        f"a policy is asked at every arrival and end, and every {format_seconds(tick)} while a job waits that "
        "could start or displace another; deciding and launching take no time"
    )
    words.append(
        "fairness is Jain's index of how fast jobs were done: time of the fastest way alone over completion "
        "time; 1 is all alike"
    )
    if weights:
        words.append("weights: " + ", ".join(f"{name} {value:g}" for name, value in weights.items()))
    return tuple(words)


def _in_rounds(folder: Path, names: Sequence[str], recompute: float, line: Progress) -> Replayed:
    from chipwise.present.progress import waiting
    from chipwise.route.simulate import neutral, rounds
    from chipwise.route.simulate.measures import of_rounds
    from chipwise.units import format_seconds

    work = neutral.read(folder)
    results = []
    for i, name in enumerate(names):
        line(i, len(names), name)
        with waiting(f"simulate: {name}; the first time on this machine, it is compiled"):
            results.append(rounds.replay(work, name, recompute))
    words = (
        f"rounds of {format_seconds(rounds.ROUND_S)}: a round's jobs are chosen at its start, at no cost for stopping "
        "or moving one",
        "rates are known exactly and don't depend on placement; a job gets all its accelerators of one kind, or none",
        "an accelerator is paid for while a job works on it; idle ones, and the rest of a round, are free",
        (
            f"an allocation holds for at least {format_seconds(recompute)}"
            if recompute
            else "allocations are recomputed at every round in which something changed"
        ),
        "fairness is Jain's index of completion times against those of an equal share of every pool; 1 is all alike",
    )
    span = float(work.arrival[-1] - work.arrival[0])
    measures = tuple(of_rounds(result, len(work.jobs)) for result in results)
    return Replayed(
        work.name, "neutral", len(work.jobs), span, None, measures, words, {r.policy: r.refused for r in results}
    )


def _draw(replayed: Replayed, plot: Path) -> None:
    from chipwise.route.simulate import plots

    fates = replayed.outcomes[0].fates
    labels = [f.owner if replayed.kind == "recorded" else f.id.partition("#")[0] for f in fates]
    plots.draw(replayed.outcomes, f"{replayed.name}: {replayed.jobs:,} jobs", labels, plot)
