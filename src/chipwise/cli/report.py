"""chipwise report: a decision on one page and what it rests on, as one HTML file or a PDF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import complete_workloads, complete_yaml
from chipwise.cli.declare import argument, option
from chipwise.cli.options import (
    NO_FLAGS,
    NO_PRICE_FLAGS,
    AssumptionsOpt,
    BudgetOpt,
    ByOpt,
    ChipsOpt,
    ComparedOpt,
    DeadlineOpt,
    EvidenceOpt,
    Flags,
    FrameworkOpt,
    HeadroomOpt,
    PriceFlags,
    SetOpt,
    SiteOpt,
    UtilizationOpt,
    with_any_flags,
    with_price_flags,
)
from chipwise.cli.router import LedgerOpt
from chipwise.verbs import defaults

EXAMPLES = """\b
Examples:
  chipwise report examples/llama-3.1-8b-pretrain.yaml --out report.html --open
  chipwise report examples/llama-3.1-8b-pretrain.yaml --on h100,h200,b200,v5p,v6e --deadline 60d --out report.pdf
  chipwise report examples/llama-3.1-70b-serve.yaml --on h100,h200,v6e --out report.html
  chipwise report examples/fleet/mixed.yaml --out plan.pdf
"""


@with_any_flags
@with_price_flags
def report(
    workload: Annotated[
        str,
        argument(
            "WORKLOAD|DEMAND",
            "A workload as `compare` takes it, or the demand file of `fleet plan`.",
            complete_workloads,
        ),
    ],
    out: Annotated[Path, option("--out", "FILE", "The file to write: its name ends in .html or .pdf.")],
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser once it is written.")] = False,
    on: ComparedOpt = None,
    chips: ChipsOpt = None,
    deadline: DeadlineOpt = None,
    budget: BudgetOpt = None,
    headroom: HeadroomOpt = None,
    by: ByOpt = None,
    utilization: UtilizationOpt = None,
    years: Annotated[float | None, option("--years", "N", "Years that servers are owned; default: 3.")] = None,
    site: SiteOpt = None,
    framework: FrameworkOpt = None,
    assumptions: SetOpt = None,
    assumptions_file: AssumptionsOpt = None,
    time_limit: Annotated[
        str | None, option("--time-limit", "TIME", "Most time for each plan solved for a demand file; default: 60s.")
    ] = None,
    pools: Annotated[
        Path | None,
        option(
            "--pools",
            "FILE",
            "With a demand file: a pools file, whose pools are judged by the ledger's jobs.",
            complete_yaml,
        ),
    ] = None,
    ledger: LedgerOpt = "",
    flags: Flags = NO_FLAGS,
    evidence: EvidenceOpt = defaults.EVIDENCE,
    offers: PriceFlags = NO_PRICE_FLAGS,
) -> None:
    """Write a report: the decision on one page, then all it rests on.

    One HTML file that needs nothing else, or a PDF printed by the browser found here: comparison, cost, break-even,
    plots, assumptions with sources, evidence and error bars, sensitivity.
    """
    from chipwise import api
    from chipwise.errors import InputError
    from chipwise.fleet.demand import is_demand
    from chipwise.knowledge import Knowledge
    from chipwise.present.blocks import Text
    from chipwise.present.output import emit
    from chipwise.present.progress import progress
    from chipwise.report.build import refuse_beside_demand
    from chipwise.report.write import ready, show_file
    from chipwise.workload.read import read_any

    ready(out)
    if is_demand(workload):
        refuse_beside_demand(flags)
    elif pools is not None:
        raise InputError("--pools", str(pools), "a demand file: a workload has no pools")
    known = Knowledge.default(assumptions=assumptions, assumptions_file=assumptions_file, **offers)
    with progress("report") as line:
        advice = None if pools is None else api.observe_advice(pools, ledger, knowledge=known)
        made = api.report(
            Path(workload) if is_demand(workload) else read_any(workload, flags),
            on,
            chips=chips,
            deadline=deadline,
            budget=budget,
            headroom=headroom,
            by=by,
            utilization=utilization,
            years=years,
            site=site,
            framework=framework,
            time_limit=time_limit,
            advice=advice,
            evidence=evidence,
            knowledge=known,
            progress=line.say,
        )
        made.write(out)
    size = f"{out}: {len(made.sections)} sections, {len(made.figures)} figures"
    emit([Text(made.decision.headline), Text(made.decision.summary), Text(size)])
    if show:
        show_file(out)
