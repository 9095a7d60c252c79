"""chipwise cost: what a workload really costs on every kind of terms, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chipwise.cli.options import (
    BILL_FORMATS,
    NO_FLAGS,
    BillFormat,
    EvidenceOpt,
    Flags,
    FrameworkOpt,
    FxOpt,
    OutFile,
    PricesOpt,
    SetOpt,
    SiteOpt,
    UtilisationOpt,
    WorkloadArg,
    complete_chips,
    complete_clouds,
    complete_offers,
    complete_regions,
    one_of,
    with_any_flags,
)

if TYPE_CHECKING:
    from chipwise.catalog.economics import Economics, Site
    from chipwise.cost import Program

EXAMPLES = """\b
Examples:
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512,v5p:512
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --cloud aws --utilisation 0.8 --years 4
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on v6e:256 --framework pytorch --custom-kernels 2 --runs 10
  chipwise cost examples/llama-3.1-70b-serve.yaml --on h100,v6e --site us-iowa --energy-price 0.05 --pue 1.2
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --set interest=0.05 --set spot_per_hour=0.02
  chipwise cost examples/llama-3.1-8b-pretrain.yaml --on h100:512 --terms spot -o focus --out bill.csv
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
            help="So many chips of each where --on says none (64 unless said).",
            show_default=False,
        ),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline", metavar="TIME", help="The fewest chips that finish within it: 12h, 30d.", show_default=False
        ),
    ] = None,
    terms: Annotated[
        str | None,
        typer.Option(
            "--terms",
            metavar="LIST",
            help="These terms alone: ondemand, 1y, 3y, spot, on-premises.",
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
    utilisation: UtilisationOpt = None,
    years: Annotated[float, typer.Option("--years", metavar="N", help="Years that servers are owned.")] = 3.0,
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
            help="Where the program runs today (an NVIDIA GPU unless said).",
            autocompletion=complete_chips,
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check", metavar="FILE", help="What `chipwise check -o json` said of the program.", show_default=False
        ),
    ] = None,
    runs: Annotated[
        float, typer.Option("--runs", metavar="N", help="Runs (months of a service) that share the port.")
    ] = 1.0,
    epochs: Annotated[
        float | None,
        typer.Option("--epochs", metavar="N", help="Passes over the training data in a run.", show_default=False),
    ] = None,
    set_: SetOpt = None,
    draws: Annotated[int, typer.Option("--draws", metavar="N", help="Draws behind the ranges.")] = 4_000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the draws.")] = 0,
    flags: Flags = NO_FLAGS,
    evidence: EvidenceOpt = "modelled",
    prices: PricesOpt = None,
    fx: FxOpt = None,
    output: BillFormat = "table",
    out: OutFile = None,
) -> None:
    """Bill a workload on every kind of terms, with the range of each.

    On demand, committed, on spot and on-premises. A run: with checkpoints, failures and interruptions; per run, epoch,
    step and million tokens. A service: a month of the chips that carry its requests; per hour, million tokens and
    thousand inferences. Split into compute, storage, egress, energy, staff and port; where commitments and servers
    break even; what matters most; every assumption.
    """
    from chipwise.cli import cost_blocks, cost_records
    from chipwise.compare import Terms, candidates
    from chipwise.compiled.evidence import better_evidence, known_evidence
    from chipwise.cost import CostAssumptions, chosen, cost_of
    from chipwise.cost.choose import read_kinds
    from chipwise.errors import InputError
    from chipwise.knowledge import Knowledge, price_book
    from chipwise.present.output import emit, emit_csv, emit_json, formats
    from chipwise.present.progress import progress
    from chipwise.workload import Workload
    from chipwise.workload.read import read_any

    formats(output, *BILL_FORMATS)
    known_evidence(evidence)
    compared = candidates(on) or []
    book = chosen(price_book(prices, fx), cloud, region, offer)
    know, place = known_of(set_), place_of(site, energy_price, pue)
    known = Knowledge(prices=book, economics=know, seed=seed)
    utilisation = use_of(know, utilisation)
    program = program_of(framework, custom_kernels, now_on, check)
    asked = CostAssumptions(place, known, years, utilisation, program, runs, epochs, draws, kinds=read_kinds(terms))
    work = read_any(workload, flags)
    trained = isinstance(work, Workload)
    if evidence == "compiled" and not trained:
        raise InputError("--evidence", evidence, "modelled: services are simulated, not compiled")
    if epochs is not None and not trained:
        raise InputError("--epochs", epochs, "a workload that is trained")
    with progress("costing") as shown:
        found = cost_of(
            work,
            compared,
            asked,
            Terms.read("cost", chips, deadline),
            shown,
            better_evidence(evidence, known.calibration) if trained else None,
        )
    if output == "json":
        emit_json(cost_records.costs(found), out)
    elif output == "csv":
        emit_csv(cost_records.rows(found), out)
    elif output == "focus":
        emit_csv(cost_records.focus(found), out)
    else:
        emit(cost_blocks.blocks(found), out)


def known_of(changes: Sequence[str] | None) -> Economics:
    """The assumptions with those that were given."""
    from chipwise.catalog.economics import economics, read_changes

    return economics().changed(read_changes(changes))


def use_of(know: Economics, given: float | None) -> float | None:
    """The utilisation asked for, by its own option or as an assumption that was set."""
    from chipwise.errors import InputError

    if know("utilisation").source != "given":
        return given
    if given is not None:
        raise InputError("--utilisation", given, "nothing beside --set utilisation, which says the same")
    return know.value("utilisation")


def place_of(name: str | None, usd_kwh: float | None = None, pue: float | None = None) -> Site:
    """Where servers of one's own would stand, with its price of electricity and PUE where those were given."""
    from chipwise.catalog.economics import DEFAULT_SITE, at, site

    return at(site(name or DEFAULT_SITE), usd_kwh, pue)


def program_of(framework: str | None, kernels: Sequence[str] | None, now_on: str | None, check: Path | None) -> Program:
    """What is known of the program that would be ported."""
    from chipwise.catalog import find_chip
    from chipwise.cost import Program
    from chipwise.cost.port import read_framework, read_kernels
    from chipwise.cost.port_check import read_check

    return Program(
        read_framework(framework),
        read_kernels(kernels),
        find_chip(now_on) if now_on else None,
        read_check(check) if check else None,
    )
