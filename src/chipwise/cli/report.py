"""chipwise report: a decision on one page and what it rests on, as one HTML file or a PDF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.options import (
    NO_FLAGS,
    BudgetOpt,
    ByOpt,
    ChipsOpt,
    ComparedOpt,
    DeadlineOpt,
    EvidenceOpt,
    Flags,
    FrameworkOpt,
    FxOpt,
    PricesOpt,
    SetOpt,
    SiteOpt,
    UtilisationOpt,
    complete_workloads,
    with_any_flags,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chipwise.catalog.economics import Economics
    from chipwise.compare import Candidate, Terms, TrainingRow
    from chipwise.compare.serving.row import ServingRow
    from chipwise.cost import CostAssumptions, Statement
    from chipwise.present.progress import Progress
    from chipwise.prices import PriceBook
    from chipwise.report.parts import Report

BILLED = 5  # rows with a bill on every kind of terms: the pick and those that rank next,
ON_SPOT = 3  # and those that cost least on spot
SUFFIXES = (".html", ".htm", ".pdf")
EXAMPLES = """\b
Examples:
  chipwise report examples/llama-3.1-8b-pretrain.yaml -o report.html
  chipwise report examples/llama-3.1-8b-pretrain.yaml --on h100,h200,b200,v5p,v6e --deadline 60d -o report.pdf
  chipwise report examples/llama-3.1-70b-serve.yaml --on h100,h200,v6e -o report.html
  chipwise report examples/fleet/mixed.yaml -o plan.pdf
"""


@with_any_flags
def report(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|DEMAND",
            help="A workload as `compare` takes it, or the demand file of `fleet plan`.",
            autocompletion=complete_workloads,
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The file to write: its name ends in .html or .pdf.",
            show_default=False,
        ),
    ],
    on: ComparedOpt = None,
    chips: ChipsOpt = None,
    deadline: DeadlineOpt = None,
    budget: BudgetOpt = None,
    by: ByOpt = None,
    utilisation: UtilisationOpt = None,
    years: Annotated[
        float | None,
        typer.Option("--years", metavar="N", help="Years that servers are owned (3 unless said).", show_default=False),
    ] = None,
    site: SiteOpt = None,
    framework: FrameworkOpt = None,
    set_: SetOpt = None,
    time_limit: Annotated[
        str | None,
        typer.Option(
            "--time-limit",
            metavar="TIME",
            help="Most time for each plan solved for a demand file (60s unless said).",
            show_default=False,
        ),
    ] = None,
    flags: Flags = NO_FLAGS,
    evidence: EvidenceOpt = "modelled",
    prices: PricesOpt = None,
    fx: FxOpt = None,
) -> None:
    """Write a report: the decision on one page, then all it rests on.

    One HTML file that needs nothing else, or a PDF printed by the browser found here: comparison, cost, break-even,
    plots, assumptions with sources, evidence and error bars, sensitivity.
    """
    from chipwise.cli.cost import known_of, place_of, program_of, use_of
    from chipwise.compare import Terms, candidates
    from chipwise.compiled.evidence import known_evidence
    from chipwise.cost import CostAssumptions
    from chipwise.errors import InputError
    from chipwise.knowledge import Knowledge, price_book

    printer = _ready(output)
    known_evidence(evidence)
    compared_on = candidates(on)
    if demand_file(workload):
        compared = {
            "--on": on,
            "--chips": chips,
            "--deadline": deadline,
            "--budget": budget,
            "--by": by,
            "--utilisation": utilisation,
            "--years": years,
            "--site": site,
            "--framework": framework,
            **{f"--{name.replace('_', '-')}": value for name, value in flags.items()},
        }
        _none({**compared, "--evidence": None if evidence == "modelled" else evidence})
        _write(_planned(workload, price_book(prices, fx), known_of(set_), time_limit), output, printer)
        return
    if time_limit is not None:
        raise InputError("--time-limit", time_limit, "a demand file: nothing is solved for a workload")
    terms = Terms.read(by, chips, deadline, budget)
    know = known_of(set_)
    asked = CostAssumptions(
        place_of(site),
        Knowledge(prices=price_book(prices, fx), economics=know),
        3.0 if years is None else years,
        use_of(know, utilisation),
        program_of(framework, None, None, None),
    )
    _write(_compared(workload, flags, compared_on, terms, evidence, asked), output, printer)


def _write(made: Report, output: Path, printer: str | None) -> None:
    """The report into its file, and what it says first."""
    from chipwise.io.atomic import atomic_write
    from chipwise.present.blocks import Text
    from chipwise.present.output import emit
    from chipwise.report.page import page

    html = page(made)
    if printer is not None:
        from chipwise.report.pdf import print_pdf

        data = print_pdf(html, printer)
    else:
        data = html.encode("utf-8")
    atomic_write(data, output, "--output")
    emit(
        [
            Text(made.decision.headline),
            Text(made.decision.summary),
            Text(f"{output}: {len(made.sections)} sections, {len(made.figures)} figures"),
        ]
    )


def _ready(target: Path) -> str | None:
    """Refuse a file that couldn't be written before the work; the browser that prints it, where it is a PDF."""
    import os

    from chipwise.errors import InputError

    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError("--output", str(target), "a file name that ends in .html or .pdf")
    folder = target.resolve().parent
    if target.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError("--output", str(target), "a file in a folder that exists and can be written to")
    if suffix != ".pdf":
        return None
    from chipwise.report.pdf import browser

    return browser()


def demand_file(text: str) -> bool:
    """Whether the argument is a demand file of `fleet plan`: a YAML file with workloads in it."""
    from chipwise.io.files import MAX_YAML_BYTES, parse_yaml, read_text

    path = Path(text)
    try:
        if path.suffix not in (".yaml", ".yml") or not path.is_file():
            return False
    except (OSError, ValueError):
        return False  # what is wrong with the name is said where workloads are read
    return "workloads" in parse_yaml(read_text(path, MAX_YAML_BYTES), path.name)


def _none(given: Mapping[str, object]) -> None:
    """Refuse options that a demand file decides."""
    from chipwise.errors import InputError

    for name, value in given.items():
        if value is not None:
            raise InputError(name, value, "no such option beside a demand file, which says what may be used")


def _planned(text: str, book: PriceBook, know: Economics, time_limit: str | None) -> Report:
    """The report of a demand file."""
    from datetime import date

    from chipwise.errors import InputError
    from chipwise.fleet.demand import read_demand
    from chipwise.fleet.planned import Wanted, plan_demand
    from chipwise.fleet.planner import TIME_LIMIT_S
    from chipwise.knowledge import Knowledge
    from chipwise.present.progress import progress
    from chipwise.report.fleet import fleet_report
    from chipwise.units import DAY, parse_duration

    today = date.today()
    seconds = TIME_LIMIT_S if time_limit is None else parse_duration(time_limit, "--time-limit")
    if not 1 <= seconds <= DAY:
        raise InputError("--time-limit", time_limit, "a second to a day, such as 60s or 5min")
    demand = read_demand(text, today)
    with progress("planning") as shown:
        asked, found = plan_demand(
            demand,
            Knowledge(prices=book, economics=know, today=today),
            Wanted(time_limit=seconds),
            say=lambda what: shown.say(f"planning: {what}"),
        )
        shown.say("drawing")
        return fleet_report(demand.name, found, today, asked)


def _compared(
    text: str, flags: Flags, compared: list[Candidate] | None, terms: Terms, evidence: str, asked: CostAssumptions
) -> Report:
    """The report of a workload of either kind."""
    from chipwise.compare import TrainingComparison, compare
    from chipwise.compiled.evidence import better_evidence
    from chipwise.present.progress import progress
    from chipwise.report.service import service_report
    from chipwise.report.training import training_report
    from chipwise.workload.read import read_any

    work, known = read_any(text, flags), asked.knowledge
    with progress("comparing") as shown:
        comparison = compare(work, compared, known, terms, shown, better_evidence(evidence, known.calibration))
        bills = _billed(comparison.rows, comparison.pick, asked, shown)
        if isinstance(comparison, TrainingComparison):
            return training_report(comparison, known.calibration.training.date, known.today, bills)
        return service_report(comparison, known.today, bills)


def _billed(
    rows: Sequence[TrainingRow] | Sequence[ServingRow],
    pick: TrainingRow | ServingRow | None,
    asked: CostAssumptions,
    shown: Progress,
) -> list[Statement]:
    """What the pick and those that rank next cost on every kind of terms, the pick first."""
    from chipwise.cost import state_cost

    if pick is None:
        return []
    leading: list[TrainingRow | ServingRow] = [
        pick,
        *[row for row in rows if row is not pick and row.ondemand][: BILLED - 1],
    ]
    by_spot = sorted((row for row in rows if row.spot), key=lambda row: row.spot.usd.value if row.spot else 0.0)
    leading += [row for row in by_spot[:ON_SPOT] if not any(row is known for known in leading)]
    bills = []
    for i, row in enumerate(leading):
        shown(i, len(leading), f"what {row.accelerators} costs")
        bills.append(state_cost(row, asked))
    shown.say("drawing")
    return bills
