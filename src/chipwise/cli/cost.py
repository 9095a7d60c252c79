"""chipwise cost: what a workload really costs by every pricing model, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from chipwise.cli.completion import complete_chips, complete_offers, one_of
from chipwise.cli.declare import option
from chipwise.cli.options import (
    NO_FLAGS,
    NO_PRICE_FLAGS,
    AssumptionsOpt,
    BillFormat,
    BudgetOpt,
    EnergyPriceOpt,
    EvidenceOpt,
    Flags,
    FrameworkOpt,
    FullOpt,
    HeadroomOpt,
    OutFile,
    PriceFlags,
    SetOpt,
    SiteOpt,
    UtilizationOpt,
    WorkloadArg,
    with_any_flags,
    with_price_flags,
)
from chipwise.verbs import defaults

EXAMPLES = """\b
Examples:
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512,v5p:512
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --full
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --cloud aws --utilization 0.8 --years 4
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on v6e:256 --framework pytorch --custom-kernels 2 --runs 10
  chipwise cost examples/llama-3.1-70b-serve.yaml --on h100,v6e --site us-iowa --energy-price 0.05 --pue 1.2
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --set interest=0.05 --set spot_per_hour=0.02
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --pricing spot -o focus --out bill.csv
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --assumptions examples/observe/rates.yaml
"""


@with_any_flags
@with_price_flags
def cost(
    workload: WorkloadArg,
    on: Annotated[str, option("--on", "LIST", "Chips, with or without counts: h100:512,v5p:512.", complete_chips)],
    chips: Annotated[
        str | None, option("--chips", "N", "Number of chips of each kind where --on says none; default: 64.")
    ] = None,
    deadline: Annotated[
        str | None, option("--deadline", "TIME", "Finish within it, with the count that costs least: 12h, 30d.")
    ] = None,
    budget: BudgetOpt = None,
    headroom: HeadroomOpt = None,
    pricing: Annotated[
        str | None,
        option(
            "--pricing",
            "LIST",
            "These pricing models alone: ondemand, 1y, 3y, spot, on-premises.",
            one_of("ondemand", "1y", "3y", "spot", "on-premises"),
        ),
    ] = None,
    offer: Annotated[
        str | None, option("--offer", "NAME", "This offer alone: cloud/region/instance.", complete_offers)
    ] = None,
    utilization: UtilizationOpt = None,
    years: Annotated[float, option("--years", "N", "Years that servers are owned.")] = defaults.YEARS,
    site: SiteOpt = None,
    energy_price: EnergyPriceOpt = None,
    pue: Annotated[
        float | None, option("--pue", "RATIO", "Power of the building over that of the servers there.")
    ] = None,
    grid: Annotated[float | None, option("--grid", "GRAMS", "Grams of CO2-equivalent a kWh of the grid there.")] = None,
    framework: FrameworkOpt = None,
    custom_kernels: Annotated[
        list[str] | None, option("--custom-kernels", "N", "Kernels written by hand: 3 (CUDA), triton:2 or pallas:1.")
    ] = None,
    now_on: Annotated[
        str | None, option("--now-on", "CHIP", "Where the program runs today; default: an NVIDIA GPU.", complete_chips)
    ] = None,
    check: Annotated[
        Path | None, option("--check", "FILE", "What `chipwise check -o json` found of the program.")
    ] = None,
    runs: Annotated[
        float, option("--runs", "N", "Runs (months of a service) that share the migration effort.")
    ] = defaults.RUNS,
    epochs: Annotated[float | None, option("--epochs", "N", "Passes over the training data in a run.")] = None,
    assumptions: SetOpt = None,
    assumptions_file: AssumptionsOpt = None,
    draws: Annotated[int, option("--draws", "N", "Draws behind the ranges.")] = defaults.DRAWS,
    seed: Annotated[int, option("--seed", "N", "Of the draws.")] = 0,
    flags: Flags = NO_FLAGS,
    evidence: EvidenceOpt = defaults.EVIDENCE,
    offers: PriceFlags = NO_PRICE_FLAGS,
    full: FullOpt = False,
    output: BillFormat = "table",
    out: OutFile = None,
) -> None:
    """Estimate the cost under each pricing model, with the range of each.

    On demand, committed, on spot and on-premises. A run: with checkpoints, failures and interruptions; per run, epoch,
    step and million tokens. A service: a month of the chips that serve its requests; per hour, million tokens and
    thousand inferences. Split into compute, storage, egress, energy, staff and migration; where commitments and
    servers break even; what matters most; every assumption.
    """
    from chipwise import api
    from chipwise.knowledge import Knowledge
    from chipwise.present.output import emit_csv, show
    from chipwise.present.progress import progress
    from chipwise.workload.read import read_any

    places = {"cloud": None, "region": None}  # `cost` itself narrows those: they can't stand beside an offer
    known = Knowledge.default(
        assumptions=assumptions, assumptions_file=assumptions_file, seed=seed, **{**offers, **places}
    )
    work = read_any(workload, flags)
    with progress("costing") as shown:
        costs = api.cost(
            work,
            on,
            chips=chips,
            deadline=deadline,
            budget=budget,
            headroom=headroom,
            pricing=pricing,
            offer=offer,
            cloud=offers["cloud"],
            region=offers["region"],
            utilization=utilization,
            years=years,
            site=site,
            energy_price=energy_price,
            pue=pue,
            grid=grid,
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
        show(costs, output, out, costs.full_blocks if full else None)
