"""chipwise cost: what a workload really costs by every pricing model, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chipwise.cli.completion import complete_chips, complete_clouds, complete_offers, complete_regions, one_of
from chipwise.cli.options import (
    BILL_FORMATS,
    NO_FLAGS,
    BillFormat,
    BudgetOpt,
    EvidenceOpt,
    Flags,
    FrameworkOpt,
    FxOpt,
    OutFile,
    PricesOpt,
    SetOpt,
    SiteOpt,
    UtilizationOpt,
    WorkloadArg,
    with_any_flags,
)
from chipwise.verbs import defaults

EXAMPLES = """\b
Examples:
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512,v5p:512
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --cloud aws --utilization 0.8 --years 4
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on v6e:256 --framework pytorch --custom-kernels 2 --runs 10
  chipwise cost examples/llama-3.1-70b-serve.yaml --on h100,v6e --site us-iowa --energy-price 0.05 --pue 1.2
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --set interest=0.05 --set spot_per_hour=0.02
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --pricing spot -o focus --out bill.csv
"""


@with_any_flags
def cost(
    workload: WorkloadArg,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="LIST",
            help="Chips, with or without counts: h100:512,v5p:512.",
            autocompletion=complete_chips,
            show_default=False,
        ),
    ],
    chips: Annotated[
        str | None,
        typer.Option(
            "--chips",
            metavar="N",
            help="So many chips of each where --on says none; default: 64.",
            show_default=False,
        ),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline", metavar="TIME", help="The fewest chips that finish within it: 12h, 30d.", show_default=False
        ),
    ] = None,
    budget: BudgetOpt = None,
    pricing: Annotated[
        str | None,
        typer.Option(
            "--pricing",
            metavar="LIST",
            help="These pricing models alone: ondemand, 1y, 3y, spot, on-premises.",
            autocompletion=one_of("ondemand", "1y", "3y", "spot", "on-premises"),
            show_default=False,
        ),
    ] = None,
    offer: Annotated[
        str | None,
        typer.Option(
            "--offer",
            metavar="NAME",
            help="This offer alone: cloud/region/instance.",
            autocompletion=complete_offers,
            show_default=False,
        ),
    ] = None,
    cloud: Annotated[
        str | None,
        typer.Option(
            "--cloud",
            metavar="NAME",
            help="Offers of this cloud alone.",
            autocompletion=complete_clouds,
            show_default=False,
        ),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(
            "--region",
            metavar="NAME",
            help="Offers in this region alone.",
            autocompletion=complete_regions,
            show_default=False,
        ),
    ] = None,
    utilization: UtilizationOpt = None,
    years: Annotated[
        float, typer.Option("--years", metavar="N", help="Years that servers are owned.")
    ] = defaults.YEARS,
    site: SiteOpt = None,
    energy_price: Annotated[
        float | None, typer.Option("--energy-price", metavar="USD", help="US dollars a kWh there.", show_default=False)
    ] = None,
    pue: Annotated[
        float | None,
        typer.Option(
            "--pue", metavar="RATIO", help="Power of the building over that of the servers there.", show_default=False
        ),
    ] = None,
    framework: FrameworkOpt = None,
    custom_kernels: Annotated[
        list[str] | None,
        typer.Option(
            "--custom-kernels",
            metavar="N",
            help="Kernels written by hand: 3 (CUDA), triton:2 or pallas:1.",
            show_default=False,
        ),
    ] = None,
    now_on: Annotated[
        str | None,
        typer.Option(
            "--now-on",
            metavar="CHIP",
            help="Where the program runs today; default: an NVIDIA GPU.",
            autocompletion=complete_chips,
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check", metavar="FILE", help="What `chipwise check -o json` found of the program.", show_default=False
        ),
    ] = None,
    runs: Annotated[
        float, typer.Option("--runs", metavar="N", help="Runs (months of a service) that share the migration effort.")
    ] = defaults.RUNS,
    epochs: Annotated[
        float | None,
        typer.Option("--epochs", metavar="N", help="Passes over the training data in a run.", show_default=False),
    ] = None,
    assumptions: SetOpt = None,
    draws: Annotated[int, typer.Option("--draws", metavar="N", help="Draws behind the ranges.")] = defaults.DRAWS,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the draws.")] = 0,
    flags: Flags = NO_FLAGS,
    evidence: EvidenceOpt = defaults.EVIDENCE,
    prices: PricesOpt = None,
    fx: FxOpt = None,
    output: BillFormat = "table",
    out: OutFile = None,
) -> None:
    """Bill a workload by every pricing model, with the range of each.

    On demand, committed, on spot and on-premises. A run: with checkpoints, failures and interruptions; per run, epoch,
    step and million tokens. A service: a month of the chips that carry its requests; per hour, million tokens and
    thousand inferences. Split into compute, storage, egress, energy, staff and migration; where commitments and
    servers break even; what matters most; every assumption.
    """
    from chipwise import api
    from chipwise.knowledge import Knowledge
    from chipwise.present.output import emit_csv, formats, show
    from chipwise.present.progress import progress
    from chipwise.workload.read import read_any

    formats(output, *BILL_FORMATS)
    known = Knowledge.default(prices, fx, assumptions, seed=seed)
    work = read_any(workload, flags)
    with progress("costing") as shown:
        costs = api.cost(
            work,
            on,
            chips=chips,
            deadline=deadline,
            budget=budget,
            pricing=pricing,
            offer=offer,
            cloud=cloud,
            region=region,
            utilization=utilization,
            years=years,
            site=site,
            energy_price=energy_price,
            pue=pue,
            framework=framework,
            custom_kernels=custom_kernels,
            now_on=now_on,
            check=check,
            runs=runs,
            epochs=epochs,
            draws=draws,
            evidence=evidence,
            knowledge=known,
            progress=shown,
        )
    if output == "focus":
        emit_csv(costs.focus_rows(), out)
    else:
        show(costs, output, out)
